"""`conformance bisect` of scripts, commands and cases on real releases, and all that goes wrong."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes import gone
from tests.projects import HEAD

from .packages import packaged, write_wheel

if TYPE_CHECKING:
    from tests.projects import Ending, Project


ENDS = ("--good", "0.6.0", "--bad", "0.6.2")
SINCE = """\
import jax
print(jax.__name__)
if jax.__version__ >= "0.6.1":
    {deed}
"""
CASE = f"""\
{HEAD}


@program(devices=1)
def doubled(env):
    wrong = env.cell.release == "0.6.2"
    return Program(lambda x: x * (3 if wrong else 2), args=(np.float32([1, 2]),),
                   reference=lambda x: x * 2)
"""


pytestmark = pytest.mark.project({"cases/numbers/doubling.py": CASE})
"""A project with a case that is wrong on one release."""


def searched(project: Project, deed: str, *options: str) -> Ending:
    """Search for the release from which on a script does something."""
    project.write({"report.py": SINCE.format(deed=deed)})
    return project.run("bisect", "report.py", *(options or ENDS))


def found(ending: Ending) -> dict[str, Any]:
    """Return what a search with `--json -` found."""
    answer: dict[str, Any] = ending.json
    return answer


@pytest.mark.parametrize(
    ("deed", "predicate", "signature"),
    [
        ("raise KeyError('axis')", "ending", "KeyError: 'axis'"),
        ("raise SystemExit(3)", "ending", "exit: status 3"),
        ("import os; os.abort()", "ending", "SIGABRT: the process was ended by SIGABRT"),
        ("import os; os.killpg(0, 9)", "ending", "SIGKILL: the process was ended by SIGKILL"),
        (
            "raise SystemExit('Unknown flag in XLA_FLAGS: --xla_x')",
            "ending",
            "exit: status 1: Unknown flag in XLA_FLAGS: --xla_x",
        ),
        ("print('more')", "output", ""),
    ],
)
def test_the_first_bad_release(project: Project, deed: str, predicate: str, signature: str) -> None:
    """Of a script as somebody pasted it, however it is wrong."""
    ending = searched(project, deed, *ENDS, "--json", "-")
    assert ending.code == 0
    answer = found(ending)
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.1")
    assert answer["predicate"]["name"] == predicate
    assert answer["confirmed"]
    bad = [step for step in answer["steps"] if step["verdict"] == "bad"]
    assert {step["signature"] for step in bad} == {signature}


def test_what_is_printed(project: Project) -> None:
    """Each probe, the answer, and what else changed between the two releases."""
    lines = searched(project, "raise KeyError('axis')").out.splitlines()
    assert lines[0] == "0.6.0      good     ok"
    assert lines[1] == "0.6.2      bad      KeyError: 'axis'"
    answer = lines.index("first bad: jax 0.6.1, last good: 0.6.0 (bad: ends with KeyError: 'axis')")
    assert lines[answer + 1] == "confirmed: both sides gave the same result again"
    assert lines[answer + 2 : answer + 5] == [
        "timeline of 3 points:",
        "  0.6.0           good     ok",
        "  0.6.1 to 0.6.2  bad      KeyError: 'axis'",
    ]
    answer += 2
    assert "jaxlib 0.6.0 -> 0.6.1" in lines[answer + 3]
    assert lines[answer + 4].startswith("3 probes of 3 points, ")


def test_the_first_release_with_a_fix(project: Project) -> None:
    """The good end is the newer one."""
    project.write({"report.py": "import jax\nassert jax.__version__ >= '0.6.1'"})
    ends = ("--good", "0.6.2", "--bad", "0.6.0", "--find", "fix")
    ending = project.run("bisect", "report.py", *ends)
    assert "first good: jax 0.6.1, last bad: 0.6.0" in ending.out


def test_another_failure_in_between_is_told(project: Project) -> None:
    """It is bad, too, for it works no more; both changes are named."""
    deed = "raise KeyError(1) if jax.__version__ == '0.6.1' else ValueError('wrong')"
    answer = found(searched(project, deed, *ENDS, "--json", "-"))
    assert (answer["last_good"], answer["others"], answer["first_bad"]) == ("0.6.0", [], "0.6.1")
    pairs = [(change["before"], change["after"]) for change in answer["changes"]]
    assert pairs == [("0.6.0", "0.6.1"), ("0.6.1", "0.6.2")]


def test_a_case(project: Project) -> None:
    """By its own reference; what was observed before is not run again, but for the confirmation."""
    ending = project.run("bisect", "numbers/doubled", *ENDS, "--json", "-")
    answer = found(ending)
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.1", "0.6.2")
    assert answer["predicate"]["name"] == "conformance"


def test_a_command(project: Project) -> None:
    """The environment's programs come first on PATH."""
    code = "import jax, sys; sys.exit(jax.__version__ > '0.6.0')"
    answer = found(project.run("bisect", f'python -c "{code}"', *ENDS, "--json", "-"))
    assert answer["first_bad"] == "0.6.1"


def test_an_option_of_jax(project: Project) -> None:
    """Whether it makes the difference, on one release."""
    project.write({"report.py": "import jax.numpy as jnp\nprint(jnp.arange(3.0).dtype)"})
    axis = ("--axis", "config:jax_enable_x64", "--jax", "0.6.2", "--good", "false", "--bad", "true")
    answer = found(project.run("bisect", "report.py", *axis, "--json", "-"))
    assert (answer["last_good"], answer["first_bad"]) == ("false", "true")
    assert answer["predicate"]["name"] == "output"


def test_a_search_goes_on_where_it_was(project: Project) -> None:
    """What the log knows is not probed again; of a script that was edited it knows nothing."""
    deed = "raise KeyError('axis')"
    searched(project, deed)
    answer = found(searched(project, deed, *ENDS, "--json", "-"))
    assert [step["version"] for step in answer["steps"] if step["replayed"]] == [
        "0.6.0", "0.6.2", "0.6.1",
    ]  # fmt: skip
    edited = found(searched(project, "raise KeyError('axes')", *ENDS, "--json", "-"))
    assert not any(step["replayed"] for step in edited["steps"])
    anew = found(searched(project, "raise KeyError('axes')", *ENDS, "--fresh", "--json", "-"))
    assert not any(step["replayed"] for step in anew["steps"])


def test_a_point_that_lacks_a_package_is_no_change(project: Project) -> None:
    """It is stepped around: what changes is found beside it."""
    deed = "__import__('mine' if jax.__version__ == '0.6.1' else 'os')\n    raise KeyError('axis')"
    answer = found(searched(project, deed, *ENDS, "--json", "-"))
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.2")
    (change,) = answer["changes"]
    assert change["unknown"] == ["0.6.1"]


def test_what_a_command_raises_is_told(project: Project) -> None:
    """By the traceback that it prints, as of a script."""
    project.write({"report.py": SINCE.format(deed="raise KeyError('axis')")})
    answer = found(project.run("bisect", "python report.py", *ENDS, "--json", "-"))
    assert "KeyError: 'axis'" in answer["predicate"]["about"]


@pytest.mark.parametrize(
    ("target", "edited"),
    [
        ("report.py", "helper.py"),
        ("report.py", "data/wanted.txt"),
        ("python report.py", "report.py"),
    ],
)
def test_a_file_that_a_program_reads_counts(project: Project, target: str, edited: str) -> None:
    """Once it has changed, the log knows nothing of the program; until then everything."""
    project.write({
        "report.py": "from helper import check\n\ncheck()\n",
        "helper.py": "import jax\n\ndef check():\n"
        "    assert jax.__version__ < open('data/wanted.txt').read().strip()\n",
        "data/wanted.txt": "0.6.2\n",
        "data/unread.txt": "1",
    })  # fmt: skip

    def steps() -> dict[str, bool]:
        ending = project.run("bisect", target, *ENDS, "--json", "-")
        assert ending.code == 0, ending.err
        answer = found(ending)
        return {step["version"]: step["replayed"] for step in answer["steps"] if not step["again"]}

    first = steps()
    assert not any(first.values())
    project.write({"data/unread.txt": "2"})
    assert all(steps().values())
    with (project.path / edited).open("a") as file:
        file.write("\n")
    assert not any(steps().values())


def test_another_timeout_is_another_question(project: Project) -> None:
    """What did not end within three seconds may end within sixty."""
    deed = "__import__('time').sleep(6)\n    raise KeyError('axis')"
    late = found(searched(project, deed, *ENDS, "--timeout", "5", "--json", "-"))
    assert "timeout" in late["predicate"]["about"]
    patient = found(searched(project, deed, *ENDS, "--timeout", "60", "--json", "-"))
    assert "KeyError" in patient["predicate"]["about"]


def test_other_packages_are_another_question(project: Project) -> None:
    """What lacks a package says nothing of a release, and is tried again with it."""
    project.write(packaged({"mine.py": ""}, "pkg", wants="jax>=0.6"))
    deed = "import mine\n    raise KeyError('axis')"
    without = searched(project, deed, *ENDS)
    assert without.code == 2
    assert "the script imports 'mine'" in without.error
    assert "--with mine" in without.error
    beside = found(searched(project, deed, *ENDS, "--with", "./pkg", "--json", "-"))
    assert "KeyError" in beside["predicate"]["about"]


@pytest.mark.cell
def test_a_search_that_is_killed(project: Project) -> None:
    """Nothing of it is left running, and what it knew is not probed again."""
    note = project.path / "pid"
    deed = "raise KeyError('axis')"
    slow = f"""\
    import os, pathlib, time
    file = pathlib.Path({str(note)!r})
    if jax.__version__ == "0.6.1" and not file.exists():
        file.write_text(str(os.getpid()))
        time.sleep(60)
    {deed}"""
    project.write({"report.py": SINCE.format(deed=slow.strip())})
    with project.start("bisect", "report.py", *ENDS) as search:
        while not (note.exists() and note.read_text()):
            assert search.poll() is None
            time.sleep(0.05)
        search.kill()
    assert gone(int(note.read_text()))
    answer = found(project.run("bisect", "report.py", *ENDS, "--json", "-"))
    assert answer["first_bad"] == "0.6.1"
    assert [step["version"] for step in answer["steps"] if step["replayed"]] == ["0.6.0", "0.6.2"]


def test_a_target_that_does_not_show_the_same_twice(project: Project) -> None:
    """It is bad, and the point before it is tried until it is hardly good by chance."""
    file = project.path / "count"
    deed = f"""\
    import pathlib
    file = pathlib.Path({str(file)!r})
    tries = len(file.read_text()) if file.exists() else 0
    if jax.__version__ == "0.6.1":
        file.write_text("x" * (tries + 1))
    assert jax.__version__ == "0.6.1" and tries % 2"""
    ending = searched(project, deed.strip())
    assert ending.code == 0
    assert "first bad: jax 0.6.1, last good: 0.6.0" in ending.out
    assert "flaky: 0.6.1 does not show the same twice: " in ending.out
    assert re.search(
        r"^0.6.0 was good (\d+) of \1 times: by chance with a probability of 0.00",
        ending.out,
        re.MULTILINE,
    )


def test_what_is_bad_in_several_ways_is_bad(project: Project) -> None:
    """Not flaky: no run of it is good."""
    deed = "import os; raise (KeyError if os.getpid() % 2 else ValueError)('axis')"
    ending = searched(project, deed, *ENDS, "--repeat", "2")
    assert ending.code == 0
    assert "first bad: jax 0.6.1, last good: 0.6.0" in ending.out
    assert "flaky" not in ending.out


def test_a_failure_in_between_is_found(project: Project) -> None:
    """Where both ends are alike, every point is tried; the timeline shows each stretch."""
    project.write({"report.py": "import jax\nassert jax.__version__ != '0.6.1', 'broken'"})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 0
    assert (
        "first bad: jax 0.6.1, last good: 0.6.0 (bad: ends with AssertionError: broken)"
        in ending.out
    )
    assert "good again from 0.6.2" in ending.out


@pytest.mark.parametrize("options", [(), ("--every",)])
def test_an_error_between_ends_that_print(project: Project, options: tuple[str, ...]) -> None:
    """It is worse than what tells the ends apart, which is told, too."""
    lines = (
        "import jax, os",
        "if jax.__version__ == '0.6.1': os.abort()",
        "print(jax.__version__ > '0.6.1')",
    )
    project.write({"report.py": "\n".join(lines)})
    ending = project.run("bisect", "report.py", *ENDS, *options)
    assert "first bad: jax 0.6.1, last good: 0.6.0 (bad: ends with SIGABRT" in ending.out
    assert "good again from 0.6.2" in ending.out
    assert ("the ends themselves differ from 0.6.2 on" in ending.out) is not bool(options)


@pytest.mark.parametrize("message", ["'axis'", "'axis' of version two"])
def test_another_message_is_a_change_of_its_own(project: Project, message: str) -> None:
    """The first bad point is the first that raises the same type."""
    lines = ("import jax", "if jax.__version__ == '0.6.1': raise KeyError('no such name at all')",
             f"if jax.__version__ > '0.6.1': raise KeyError({message!r})")  # fmt: skip
    project.write({"report.py": "\n".join(lines)})
    answer = found(project.run("bisect", "report.py", *ENDS, "--json", "-"))
    assert (answer["last_good"], answer["first_bad"], answer["others"]) == ("0.6.0", "0.6.1", [])
    assert [one["first"] for one in answer["timeline"]] == ["0.6.0", "0.6.1", "0.6.2"]


def test_a_good_end_that_fails_is_a_fix(project: Project) -> None:
    """What is called bad works there."""
    project.write({"report.py": "import jax\nassert jax.__version__ > '0.6.0', 'broken'"})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 0
    assert (
        "fixed in jax 0.6.1, last bad: 0.6.0 (bad: ends with AssertionError: broken)" in ending.out
    )


def test_facts_of_an_environment_are_no_change(project: Project) -> None:
    """A script that prints its versions does the same everywhere, as far as one can say."""
    printed = (
        "jax.__version__", "jax.print_environment_info()", "jax.devices()", "jax.__file__",
        "id(jax), object()", "time.time(), 's'", "sys.version", "jax.__version_info__",
        "f'took {time.perf_counter():.3f} s'", "jax.numpy.sum(jax.numpy.ones(3))",
    )  # fmt: skip
    project.write(
        {"report.py": "import jax, sys, time\n" + "\n".join(f"print({p})" for p in printed)}
    )
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 2
    assert "are alike: both end with ok, and nothing else" in ending.error


def test_ends_that_differ_in_versions_alone_say_so(project: Project) -> None:
    """And in what; `--when text` compares what is printed as it is."""
    project.write({"report.py": "import jax\nprint('jax is', jax.__version__)"})
    ending = project.run("bisect", "report.py", *ENDS)
    assert "nothing else differs but facts of the environment" in ending.error
    assert "prints 'jax is 0.6.2' instead of 'jax is 0.6.0'" in ending.error
    answer = found(project.run("bisect", "report.py", *ENDS, "--when", "text", "--json", "-"))
    assert answer["first_bad"] == "0.6.1"


@pytest.mark.parametrize(("wrong", "headline"), [
    ("0.6.2", "first bad: jax 0.6.2, last good: 0.6.1 (bad: prints something else"),
    ("never", "fixed in jax 0.6.1, last bad: 0.6.0 (bad: ends with AttributeError"),
])  # fmt: skip
def test_an_interface_that_does_not_exist_yet(project: Project, wrong: str, headline: str) -> None:
    """Says nothing of what the bad end prints, unless that is what all others print."""
    lines = ("import jax", "if jax.__version__ == '0.6.0': jax.shard_mop",
             f"print('wrong' if jax.__version__ == {wrong!r} else 'right')")  # fmt: skip
    project.write({"report.py": "\n".join(lines)})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 0
    assert headline in ending.out


def test_an_api_that_is_missing_at_the_good_end(project: Project) -> None:
    """Where both ends fail, what works in between is the good end."""
    lines = ("import jax", "if jax.__version__ == '0.6.0': jax.shard_mop",
             "if jax.__version__ == '0.6.2': raise ValueError('broken')")  # fmt: skip
    project.write({"report.py": "\n".join(lines)})
    answer = found(project.run("bisect", "report.py", *ENDS, "--json", "-"))
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.1", "0.6.2")
    assert answer["timeline"][0]["verdict"] == "other"


ISSUE = """\
### Description

Since the upgrade this prints something else:

```python
>>> import os, jax, mine
>>> mine.which, os.environ["MINE"]
('1.0', 'a')
>>> jax.__version__ > '0.6.0'
```

```console
$ pip list
jax     0.6.2
mine    1.0
```
"""


@pytest.mark.parametrize("name", ["issue.md", "report.py"])
def test_a_report_as_pasted(project: Project, name: str) -> None:
    """Its prompts are taken off, what they show is printed, and its versions are used."""
    project.write(packaged({"mine.py": "which = '1.0'"}, "pkg", wants="jax>=0.6"))
    project.write({name: ISSUE.replace(">>> import", "$ export MINE=a\n>>> import")})
    ending = project.run("bisect", name, *ENDS, "--with", "./pkg", "--json", "-")
    answer = found(ending)
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.1")
    assert f"{name}: its script is " in ending.err


@pytest.mark.parametrize(
    ("old", "expected"),
    [("jax<0.6.1", "mine 1.0 -> 2.0"), ("jax>=0.6", "with mine 1.0 on both sides")],
)
def test_a_package_does_not_float(
    project: Project, monkeypatch: pytest.MonkeyPatch, old: str, expected: str
) -> None:
    """One version is taken where there is one for both ends; else it is told what differs."""
    links = project.path / "links"
    write_wheel(links, "1.0", old, "version = 1")
    write_wheel(links, "2.0", "jax>=0.6.1", "version = 2")
    monkeypatch.setenv("UV_FIND_LINKS", str(links))
    line = "assert jax.__version__ == '0.6.0' or mine.version == 0"
    project.write({"report.py": f"import mine, jax\n{line}"})
    ending = project.run("bisect", "report.py", *ENDS, "--with", "mine", "--fresh")
    assert "first bad: jax 0.6.1, last good: 0.6.0" in ending.out
    assert expected in ending.out


def test_a_script_that_needs_arguments(project: Project) -> None:
    """Its usage is shown, and how to give them."""
    lines = ("import argparse", "parser = argparse.ArgumentParser()",
             "parser.add_argument('--steps', required=True)", "parser.parse_args()")  # fmt: skip
    project.write({"report.py": "\n".join(lines)})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 2
    assert "usage: report.py [-h] --steps STEPS; give it as a command line: " in ending.error
    assert "'python report.py ...'" in ending.error


def test_what_a_command_prints_last_is_told(project: Project) -> None:
    """Beside its exit status."""
    project.write({"report.py": SINCE.format(deed="import sys; sys.exit('no such axis')")})
    answer = found(project.run("bisect", "python report.py", *ENDS, "--json", "-"))
    assert answer["predicate"]["about"] == "ends with exit: status 1: no such axis"


def test_a_secret_in_the_last_line_is_masked(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As everywhere."""
    monkeypatch.setenv("MY_API_TOKEN", "hunter2-hunter2")
    project.write({"report.py": SINCE.format(deed="raise SystemExit('of hunter2-hunter2')")})
    ending = project.run("bisect", "python report.py", *ENDS)
    assert "ends with exit: status 1: of " in ending.out
    assert "hunter2" not in ending.out


def test_a_hang_is_ended(project: Project) -> None:
    """And is an ending as any other; where it hangs is told."""
    deed = "import time; time.sleep(60)"
    answer = found(searched(project, deed, *ENDS, "--timeout", "6", "--json", "-"))
    assert answer["first_bad"] == "0.6.1"
    assert answer["steps"][1]["outcome"] == "timed_out"
    assert answer["steps"][1]["said"].endswith("; at report.py:4 in <module>")


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--when", "time"), "time"),
        (("--region", "step"), "time of region step"),
        (("--metric", r"^took ([\d.e-]+)"), "metric"),
    ],
)
def test_a_call_that_is_slow(project: Project, options: tuple[str, ...], name: str) -> None:
    """Seven times as long is found in a hundredth of the time of the process."""
    lines = (
        "import time, jax, conformance",
        "slow = jax.__version__ >= '0.6.1'",
        "with conformance.timed('step'):",
        "    time.sleep(0.07 if slow else 0.01)",
        "print('took', 0.07 if slow else 0.01)",
    )
    project.write({"report.py": "\n".join(lines)})
    answer = found(project.run("bisect", "report.py", *ENDS, *options, "--json", "-"))
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.1")
    assert answer["predicate"]["name"] == name


def test_a_warm_call_of_a_case(project: Project) -> None:
    """It has a time of its own, also where the case donates its arguments."""
    body = CASE.replace("args=", "jit={'donate_argnums': 0}, args=")
    project.write({"cases/numbers/doubling.py": body})
    ends = ("--good", "0.6.0", "--bad", "0.6.1", "--stage", "call")
    ending = project.run("bisect", "numbers/doubled", *ends)
    assert "time to call: ambiguous, the ends overlap" in ending.error
    assert "median 0 " not in ending.error


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--region", "step", "--metric", "x"), "--region step and --metric x: expected one"),
        (("--metric", "x", "--when", "value"), "--metric x: goes with --when time"),
        (("--metric", "("), "expected a regular expression"),
        (("--when", "time", "--every"), "--every: goes with what one look shows"),
        (("--stage", "call", "--repeat", "3"), "--repeat: goes with what one look shows"),
    ],
)
def test_options_of_what_is_measured(project: Project, options: tuple[str, ...], said: str) -> None:
    """One thing is measured at a time."""
    project.write({"report.py": "print(1)"})
    ending = project.run("bisect", "report.py", *ENDS, *options)
    assert ending.code == 2
    assert said in ending.err


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("print(1)", "both end with ok, and nothing else that was seen differs; name other ends"),
        ("raise KeyError('axis')", "both end with KeyError: 'axis'"),
    ],
)
def test_ends_that_are_alike(project: Project, script: str, said: str) -> None:
    """There is nothing to search."""
    project.write({"report.py": script})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 2
    assert f"are alike: {said}" in ending.error


def test_ends_that_fail_for_different_reasons(project: Project) -> None:
    """The bad one is the bug, and the good one is told."""
    script = "import jax\nraise (KeyError if jax.__version__ == '0.6.0' else OSError)('wrong')"
    project.write({"report.py": script})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 0
    assert "first bad: jax 0.6.1, last good: 0.6.0 (bad: ends with OSError: wrong)" in ending.out
    assert "the good end fails, too, and no point works: it ends with KeyError" in ending.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--good", "0.6.2", "--bad", "0.6.0"), "0.6.2 is newer than --bad 0.6.0; say --find fix"),
        ((*ENDS, "--find", "fix"), "0.6.0 is older than --bad 0.6.2; leave out --find"),
        (("--good", "0.6.0", "--bad", "0.6.0"), "--good and --bad are both 0.6.0, expected two"),
        (("--good", ">=0.6", "--bad", "latest"), "releases, expected one"),
        ((*ENDS, "--when", "exit"), "was to be good, got bad: KeyError"),
    ],
)  # fmt: skip
def test_ends_that_are_wrong(project: Project, options: tuple[str, ...], said: str) -> None:
    """It is told which, and what was expected."""
    project.write({"report.py": "raise KeyError(1)"})
    ending = project.run("bisect", "report.py", *options)
    assert ending.code == 2
    assert said in ending.error


@pytest.mark.parametrize(
    ("target", "code", "said"),
    [
        ("gone.py", 2, "gone.py: no such file, expected a Python script or test"),
        ("numbers/gone", 3, "numbers/gone"),
    ],
)
def test_a_target_that_is_not_there(project: Project, target: str, code: int, said: str) -> None:
    """It is told before anything is tried."""
    ending = project.run("bisect", target, *ENDS)
    assert (ending.code, ending.out) == (code, "")
    assert said in ending.error


SINCE_COMMAND = (
    'python -c "from importlib.metadata import version; import time; '
    "late = version('jax') > '0.6.0'; {}\""
)


@pytest.mark.parametrize(
    ("figure", "deed", "unit"),
    [
        ("time", "time.sleep(late / 2)", "s, between"),
        ("memory", "held = b'x' * (late * 2**28)", "MiB, between"),
    ],
)
def test_the_first_release_that_takes_more(
    project: Project, figure: str, deed: str, unit: str
) -> None:
    """Each point is measured as often as it takes; the medians are told."""
    target = SINCE_COMMAND.format(deed)
    ending = project.run("bisect", "--command", target, *ENDS, "--when", figure, "--json", "-")
    assert ending.code == 0, ending.err
    answer = found(ending)
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.1")
    assert answer["predicate"]["about"].startswith(f"takes more {figure} than ")
    assert unit in answer["predicate"]["about"]
    assert all(step["said"].startswith("median ") for step in answer["steps"])
    assert {len(step["samples"]) for step in answer["steps"]} <= {3, 6, 9, 12, 15}


GATHERED = """\
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(jax.devices(), "x")
late = jax.__version__ >= "0.6.1"
@jax.jit
def f(x):
    return jax.lax.with_sharding_constraint(x * 2, NamedSharding(mesh, P() if late else P("x")))
f(jax.device_put(jnp.ones(8), NamedSharding(mesh, P("x"))))
"""


def test_the_first_release_with_a_collective(project: Project) -> None:
    """Of a script, which sets its own flags: all that it compiles is looked at."""
    project.write({"gathers.py": GATHERED})
    ending = project.run(
        "bisect", "gathers.py", *ENDS, "--fact", "collectives.all-gather", "--json", "-"
    )
    assert ending.code == 0, ending.err
    answer = found(ending)
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.1")
    assert answer["predicate"]["about"] == "states collectives.all-gather = 1"


def test_a_fact_of_a_case(project: Project) -> None:
    """One that is no part of what gates may be asked about, too."""
    case = ("numbers/doubled", "--good", "0.6.0", "--bad", "0.6.2")
    same = project.run("bisect", *case, "--fact", "ops.multiply")
    assert same.code == 2
    assert "--fact ops.multiply: is 1 at both ends" in same.err
    unknown = project.run("bisect", *case, "--fact", "colours")
    assert unknown.code == 2
    assert "--fact colours: no such fact, expected one of" in unknown.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fact", "ops", "--when", "value"), "--fact ops: goes with --when facts"),
        (("--stage", "compile", "--when", "value"), "--stage compile: goes with --when time"),
        (("--stage", "compile"), "has no time to compile; expected a --stage"),
    ],
)
def test_questions_that_contradict_each_other(
    project: Project, options: tuple[str, ...], said: str
) -> None:
    """Before anything is tried, where that can be known."""
    ending = searched(project, "pass", *ENDS, *options)
    assert ending.code == 2
    assert said in ending.err
