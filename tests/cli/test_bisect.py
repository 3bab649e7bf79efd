"""`conformance bisect` of scripts, commands and cases on real releases, and its errors."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.processes import ends_within
from tests.projects import HEAD

from .packages import package_files, write_wheel

if TYPE_CHECKING:
    from tests.projects import Ending, Project


ENDS = ("--good", "0.6.0", "--bad", "0.6.2")
RELEASE = "from importlib.metadata import version; release = version('jax')"
"""Line of a script that is about its release alone: importing jax would take most of its time."""
SINCE = f"""\
{RELEASE}
print("begun")
if release >= "0.6.1":
    {{deed}}
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


def bisect_since(project: Project, deed: str, *options: str) -> Ending:
    """Bisect a script that executes a statement from release 0.6.1 on."""
    project.write({"report.py": SINCE.format(deed=deed)})
    return project.run("bisect", "report.py", *(options or ENDS))


def read_answer(ending: Ending) -> dict[str, Any]:
    """Return the answer of a search with `--json -`."""
    answer: dict[str, Any] = ending.json
    return answer


@pytest.mark.long(keep=3)
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
def test_bisect_finds_first_bad_release_of_a_script(
    project: Project, deed: str, predicate: str, signature: str
) -> None:
    """Whether the script raises, exits, is killed or prints something else."""
    ending = bisect_since(project, deed, *ENDS, "--json", "-")
    assert ending.code == 0
    answer = read_answer(ending)
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.1")
    assert answer["predicate"]["name"] == predicate
    assert answer["confirmed"]
    bad = [step for step in answer["steps"] if step["verdict"] == "bad"]
    assert {step["signature"] for step in bad} == {signature}


def test_bisect_prints_trials_answer_and_timeline(project: Project) -> None:
    """The other packages that changed between the two releases are listed, too."""
    lines = bisect_since(project, "raise KeyError('axis')").out.splitlines()
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
    assert lines[answer + 4].startswith("3 trials for 3 points, ")


@pytest.mark.long
@pytest.mark.parametrize(
    ("use", "said"),
    [
        ("print(jax.make_mesh((2, 2), ('a', 'b')).size)", "the program needs 4 devices"),
        ("assert len(jax.devices()[:4]) == 4", "the program names 4 devices"),
    ],
)
def test_script_gets_its_devices(project: Project, use: str, said: str) -> None:
    """By the error of its mesh on one device, or as its source names them."""
    script = f"import jax\n{RELEASE}\n{use}\nassert release < '0.6.1', 'new'\n"
    project.write({"report.py": script})
    lines = project.run("bisect", "report.py", *ENDS).out.splitlines()
    assert lines[0] == f"{said}: searched on cpu4"
    assert any(line.startswith("first bad: jax 0.6.1, last good: 0.6.0") for line in lines)


def test_find_fix_reports_first_good_release(project: Project) -> None:
    """With `--find fix` the good end is the newer release."""
    project.write({"report.py": f"{RELEASE}\nassert release >= '0.6.1'"})
    ends = ("--good", "0.6.2", "--bad", "0.6.0", "--find", "fix")
    ending = project.run("bisect", "report.py", *ends)
    assert "first good: jax 0.6.1, last bad: 0.6.0" in ending.out


def test_bisect_lists_another_failure_between_the_ends(project: Project) -> None:
    """A point with another error counts as bad; both changes are listed."""
    deed = "raise KeyError(1) if release == '0.6.1' else ValueError('wrong')"
    answer = read_answer(bisect_since(project, deed, *ENDS, "--json", "-"))
    assert (answer["last_good"], answer["others"], answer["first_bad"]) == ("0.6.0", [], "0.6.1")
    pairs = [(change["before"], change["after"]) for change in answer["changes"]]
    assert pairs == [("0.6.0", "0.6.1"), ("0.6.1", "0.6.2")]


@pytest.mark.long
def test_bisect_judges_a_case_by_its_reference(project: Project) -> None:
    """The predicate of a case with a reference is its conformance."""
    ending = project.run("bisect", "numbers/doubled", *ENDS, "--json", "-")
    answer = read_answer(ending)
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.1", "0.6.2")
    assert answer["predicate"]["name"] == "conformance"


@pytest.mark.long
def test_bisect_command_runs_the_programs_of_the_cell(project: Project) -> None:
    """The programs of the environment come first on PATH."""
    code = "import jax, sys; sys.exit(jax.__version__ > '0.6.0')"
    answer = read_answer(project.run("bisect", f'python -c "{code}"', *ENDS, "--json", "-"))
    assert answer["first_bad"] == "0.6.1"


@pytest.mark.long
def test_bisect_over_a_jax_config_option(project: Project) -> None:
    """The axis is one option of jax, on one release."""
    project.write({"report.py": "import jax.numpy as jnp\nprint(jnp.arange(3.0).dtype)"})
    axis = ("--axis", "config:jax_enable_x64", "--jax", "0.6.2", "--good", "false", "--bad", "true")
    answer = read_answer(project.run("bisect", "report.py", *axis, "--json", "-"))
    assert (answer["last_good"], answer["first_bad"]) == ("false", "true")
    assert answer["predicate"]["name"] == "output"


def test_bisect_replays_probes_from_its_log(project: Project) -> None:
    """Probes of an edited script, or with `--fresh`, are not replayed."""
    deed = "raise KeyError('axis')"
    bisect_since(project, deed)
    answer = read_answer(bisect_since(project, deed, *ENDS, "--json", "-"))
    assert [step["version"] for step in answer["steps"] if step["replayed"]] == [
        "0.6.0", "0.6.2", "0.6.1",
    ]  # fmt: skip
    edited = read_answer(bisect_since(project, "raise KeyError('axes')", *ENDS, "--json", "-"))
    assert not any(step["replayed"] for step in edited["steps"])
    fresh_answer = read_answer(
        bisect_since(project, "raise KeyError('axes')", *ENDS, "--fresh", "--json", "-")
    )
    assert not any(step["replayed"] for step in fresh_answer["steps"])


@pytest.mark.long
def test_point_that_lacks_a_package_is_skipped(project: Project) -> None:
    """It counts as unknown, and the change is found between its neighbours."""
    deed = "__import__('mine' if release == '0.6.1' else 'os')\n    raise KeyError('axis')"
    answer = read_answer(bisect_since(project, deed, *ENDS, "--json", "-"))
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.2")
    (change,) = answer["changes"]
    assert change["unknown"] == ["0.6.1"]


def test_error_of_a_command_is_read_from_its_traceback(project: Project) -> None:
    """A command that prints a traceback is reported with the error, as a script is."""
    project.write({"report.py": SINCE.format(deed="raise KeyError('axis')")})
    answer = read_answer(project.run("bisect", "python report.py", *ENDS, "--json", "-"))
    assert "KeyError: 'axis'" in answer["predicate"]["about"]


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("target", "edited"),
    [
        ("report.py", "helper.py"),
        ("report.py", "data/wanted.txt"),
        ("python report.py", "report.py"),
    ],
)
def test_edited_input_file_invalidates_the_log(project: Project, target: str, edited: str) -> None:
    """Files that the program reads are part of the key of its probes; others are not."""
    project.write({
        "report.py": "from helper import check\n\ncheck()\n",
        "helper.py": f"{RELEASE}\n\ndef check():\n"
        "    assert release < open('data/wanted.txt').read().strip()\n",
        "data/wanted.txt": "0.6.2\n",
        "data/unread.txt": "1",
    })  # fmt: skip

    def steps() -> dict[str, bool]:
        ending = project.run("bisect", target, *ENDS, "--json", "-")
        assert ending.code == 0, ending.err
        answer = read_answer(ending)
        return {step["version"]: step["replayed"] for step in answer["steps"] if not step["again"]}

    first = steps()
    assert not any(first.values())
    project.write({"data/unread.txt": "2"})
    assert all(steps().values())
    with (project.path / edited).open("a") as file:
        file.write("\n")
    assert not any(steps().values())


@pytest.mark.long
def test_timeout_is_part_of_the_log_key(project: Project) -> None:
    """A point that hit a timeout of five seconds may end within sixty."""
    deed = "__import__('time').sleep(6)\n    raise KeyError('axis')"
    late = read_answer(bisect_since(project, deed, *ENDS, "--timeout", "5", "--json", "-"))
    assert "timeout" in late["predicate"]["about"]
    patient = read_answer(bisect_since(project, deed, *ENDS, "--timeout", "60", "--json", "-"))
    assert "KeyError" in patient["predicate"]["about"]


@pytest.mark.long
def test_with_packages_are_part_of_the_log_key(project: Project) -> None:
    """A probe without the package cannot be replayed for the same release with it."""
    project.write(package_files({"mine.py": ""}, "pkg", wants="jax>=0.6"))
    deed = "import mine\n    raise KeyError('axis')"
    without = bisect_since(project, deed, *ENDS)
    assert without.code == 2
    assert "the script imports 'mine'" in without.error
    assert "--with mine" in without.error
    beside = read_answer(bisect_since(project, deed, *ENDS, "--with", "./pkg", "--json", "-"))
    assert "KeyError" in beside["predicate"]["about"]


@pytest.mark.cell
def test_killed_bisect_leaves_no_process_and_resumes_from_its_log(project: Project) -> None:
    """Finished probes are replayed by the next search."""
    note = project.path / "pid"
    deed = "raise KeyError('axis')"
    slow = f"""\
    import os, pathlib, time
    file = pathlib.Path({str(note)!r})
    if release == "0.6.1" and not file.exists():
        file.write_text(str(os.getpid()))
        time.sleep(60)
    {deed}"""
    project.write({"report.py": SINCE.format(deed=slow.strip())})
    with project.start("bisect", "report.py", *ENDS) as search:
        while not (note.exists() and note.read_text()):
            assert search.poll() is None
            time.sleep(0.05)
        search.kill()
    assert ends_within(int(note.read_text()))
    answer = read_answer(project.run("bisect", "report.py", *ENDS, "--json", "-"))
    assert answer["first_bad"] == "0.6.1"
    assert [step["version"] for step in answer["steps"] if step["replayed"]] == ["0.6.0", "0.6.2"]


@pytest.mark.long
def test_flaky_point_counts_as_bad(project: Project) -> None:
    """The last good point is repeated until it is unlikely to be good by chance."""
    file = project.path / "count"
    deed = f"""\
    import pathlib
    file = pathlib.Path({str(file)!r})
    tries = len(file.read_text()) if file.exists() else 0
    if release == "0.6.1":
        file.write_text("x" * (tries + 1))
    assert release == "0.6.1" and tries % 2"""
    ending = bisect_since(project, deed.strip())
    assert ending.code == 0
    assert "first bad: jax 0.6.1, last good: 0.6.0" in ending.out
    assert "flaky: 0.6.1 does not show the same twice: " in ending.out
    assert re.search(
        r"^0.6.0 was good (\d+) of \1 times: by chance with a probability of 0.00",
        ending.out,
        re.MULTILINE,
    )


@pytest.mark.long
def test_point_that_always_fails_with_varying_errors_is_not_flaky(project: Project) -> None:
    """No attempt at it is good."""
    deed = "import os; raise (KeyError if os.getpid() % 2 else ValueError)('axis')"
    ending = bisect_since(project, deed, *ENDS, "--repeat", "2")
    assert ending.code == 0
    assert "first bad: jax 0.6.1, last good: 0.6.0" in ending.out
    assert "flaky" not in ending.out


def test_bisect_finds_a_failure_between_equal_ends(project: Project) -> None:
    """If both ends are alike, every point is tried."""
    project.write({"report.py": f"{RELEASE}\nassert release != '0.6.1', 'broken'"})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 0
    assert (
        "first bad: jax 0.6.1, last good: 0.6.0 (bad: ends with AssertionError: broken)"
        in ending.out
    )
    assert "good again from 0.6.2" in ending.out


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("options", [(), ("--every",)])
def test_error_between_ends_that_differ_in_output_takes_precedence(
    project: Project, options: tuple[str, ...]
) -> None:
    """The difference between the ends is reported in addition."""
    lines = (
        f"import os; {RELEASE}",
        "if release == '0.6.1': os.abort()",
        "print(release > '0.6.1')",
    )
    project.write({"report.py": "\n".join(lines)})
    ending = project.run("bisect", "report.py", *ENDS, *options)
    assert "first bad: jax 0.6.1, last good: 0.6.0 (bad: ends with SIGABRT" in ending.out
    assert "good again from 0.6.2" in ending.out
    assert ("the ends themselves differ from 0.6.2 on" in ending.out) is not bool(options)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("message", ["'axis'", "'axis' of version two"])
def test_first_point_with_the_bad_error_type_is_first_bad(project: Project, message: str) -> None:
    """Another message of the same error type is another stretch of the timeline."""
    lines = (RELEASE, "if release == '0.6.1': raise KeyError('no such name at all')",
             f"if release > '0.6.1': raise KeyError({message!r})")  # fmt: skip
    project.write({"report.py": "\n".join(lines)})
    answer = read_answer(project.run("bisect", "report.py", *ENDS, "--json", "-"))
    assert (answer["last_good"], answer["first_bad"], answer["others"]) == ("0.6.0", "0.6.1", [])
    assert [one["first"] for one in answer["timeline"]] == ["0.6.0", "0.6.1", "0.6.2"]


def test_failing_good_end_is_reported_as_fix(project: Project) -> None:
    """The bad end works, so the search reports the fix."""
    project.write({"report.py": f"{RELEASE}\nassert release > '0.6.0', 'broken'"})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 0
    assert (
        "fixed in jax 0.6.1, last bad: 0.6.0 (bad: ends with AssertionError: broken)" in ending.out
    )


@pytest.mark.long
def test_printed_versions_paths_and_times_are_ignored(project: Project) -> None:
    """Ends that differ only in facts of their environments are alike."""
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


@pytest.mark.long
def test_ends_that_differ_only_in_versions_are_refused(project: Project) -> None:
    """The message quotes both lines; `--when text` compares the raw output."""
    project.write({"report.py": f"{RELEASE}\nprint('jax is', release)"})
    ending = project.run("bisect", "report.py", *ENDS)
    assert "nothing else differs but facts of the environment" in ending.error
    assert "prints 'jax is 0.6.2' instead of 'jax is 0.6.0'" in ending.error
    answer = read_answer(project.run("bisect", "report.py", *ENDS, "--when", "text", "--json", "-"))
    assert answer["first_bad"] == "0.6.1"


@pytest.mark.long
@pytest.mark.parametrize(("wrong", "headline"), [
    ("0.6.2", "first bad: jax 0.6.2, last good: 0.6.1 (bad: prints something other"),
    ("never", "fixed in jax 0.6.1, last bad: 0.6.0 (bad: ends with AttributeError"),
])  # fmt: skip
def test_missing_api_at_the_good_end_is_no_change_of_output(
    project: Project, wrong: str, headline: str
) -> None:
    """Unless every other point prints the same as the bad end: then it is a fix."""
    lines = ("import jax", "if jax.__version__ == '0.6.0': jax.shard_mop",
             f"print('wrong' if jax.__version__ == {wrong!r} else 'right')")  # fmt: skip
    project.write({"report.py": "\n".join(lines)})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 0
    assert headline in ending.out


@pytest.mark.long
def test_working_point_replaces_a_good_end_that_lacks_the_api(project: Project) -> None:
    """If both ends fail, a point between them that works becomes the good end."""
    lines = ("import jax", "if jax.__version__ == '0.6.0': jax.shard_mop",
             "if jax.__version__ == '0.6.2': raise ValueError('broken')")  # fmt: skip
    project.write({"report.py": "\n".join(lines)})
    answer = read_answer(project.run("bisect", "report.py", *ENDS, "--json", "-"))
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


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("name", ["issue.md", "report.py"])
def test_bisect_runs_a_pasted_report(project: Project, name: str) -> None:
    """Prompts are removed, expressions are printed, and the versions in the report are used."""
    project.write(package_files({"mine.py": "which = '1.0'"}, "pkg", wants="jax>=0.6"))
    project.write({name: ISSUE.replace(">>> import", "$ export MINE=a\n>>> import")})
    ending = project.run("bisect", name, *ENDS, "--with", "./pkg", "--json", "-")
    answer = read_answer(ending)
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.1")
    assert f"{name}: its script is " in ending.err


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("old", "expected"),
    [("jax<0.6.1", "mine 1.0 -> 2.0"), ("jax>=0.6", "with mine 1.0 on both sides")],
)
def test_with_package_is_pinned_to_one_version_if_possible(
    project: Project, monkeypatch: pytest.MonkeyPatch, old: str, expected: str
) -> None:
    """If no version fits both ends, its versions are listed among the differences."""
    links = project.path / "links"
    write_wheel(links, "1.0", old, "version = 1")
    write_wheel(links, "2.0", "jax>=0.6.1", "version = 2")
    monkeypatch.setenv("UV_FIND_LINKS", str(links))
    line = "assert release == '0.6.0' or mine.version == 0"
    project.write({"report.py": f"import mine; {RELEASE}\n{line}"})
    ending = project.run("bisect", "report.py", *ENDS, "--with", "mine", "--fresh")
    assert "first bad: jax 0.6.1, last good: 0.6.0" in ending.out
    assert expected in ending.out


def test_script_that_needs_arguments_is_refused_with_its_usage(project: Project) -> None:
    """The message shows how to pass the arguments."""
    lines = ("import argparse", "parser = argparse.ArgumentParser()",
             "parser.add_argument('--steps', required=True)", "parser.parse_args()")  # fmt: skip
    project.write({"report.py": "\n".join(lines)})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 2
    assert "usage: report.py [-h] --steps STEPS; give it as a command line: " in ending.error
    assert "'python report.py ...'" in ending.error


def test_last_line_of_a_failing_command_is_reported(project: Project) -> None:
    """In addition to its exit status."""
    project.write({"report.py": SINCE.format(deed="import sys; sys.exit('no such axis')")})
    answer = read_answer(project.run("bisect", "python report.py", *ENDS, "--json", "-"))
    assert answer["predicate"]["about"] == "ends with exit: status 1: no such axis"


def test_a_secret_in_the_last_line_is_masked(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of secret environment variables never reach the output."""
    monkeypatch.setenv("MY_API_TOKEN", "hunter2-hunter2")
    project.write({"report.py": SINCE.format(deed="raise SystemExit('of hunter2-hunter2')")})
    ending = project.run("bisect", "python report.py", *ENDS)
    assert "ends with exit: status 1: of " in ending.out
    assert "hunter2" not in ending.out


def test_hang_is_stopped_by_the_timeout_and_located(project: Project) -> None:
    """The hang counts as an outcome, and its line is reported."""
    deed = "import time; time.sleep(60)"
    answer = read_answer(bisect_since(project, deed, *ENDS, "--timeout", "6", "--json", "-"))
    assert answer["first_bad"] == "0.6.1"
    assert answer["steps"][1]["outcome"] == "timed_out"
    assert answer["steps"][1]["said"].endswith("; at report.py:4 in <module>")


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--when", "time"), "time"),
        (("--region", "step"), "time of region step"),
        (("--metric", r"^took ([\d.e-]+)"), "metric"),
    ],
)
def test_bisect_by_time_region_and_printed_metric(
    project: Project, options: tuple[str, ...], name: str
) -> None:
    """A call that takes seven times as long is found although the process takes far longer."""
    lines = (
        f"import time, conformance; {RELEASE}",
        "time.sleep(0.2)",  # an import of jax, without its work
        "slow = release >= '0.6.1'",
        "with conformance.timed('step'):",
        "    time.sleep(0.07 if slow else 0.01)",
        "print('took', 0.07 if slow else 0.01)",
    )
    project.write({"report.py": "\n".join(lines)})
    answer = read_answer(project.run("bisect", "report.py", *ENDS, *options, "--json", "-"))
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.1")
    assert answer["predicate"]["name"] == name


@pytest.mark.long
def test_a_script_that_prints_its_times_is_searched_for_a_slow_release(project: Project) -> None:
    """Without options, although both ends are fast and nothing else differs."""
    lines = (
        f"import time; {RELEASE}",
        "start = time.perf_counter()",
        "time.sleep(0.3 if release == '0.6.1' else 0.01)",
        "print(f'step {(time.perf_counter() - start) * 1e3:.2f} ms')",
    )
    project.write({"report.py": "\n".join(lines)})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 0
    assert "alike in all but time, which is measured now" in ending.out
    assert "first bad: jax 0.6.1, last good: 0.6.0 (bad: has printed time 'step #' above" in (
        ending.out
    )
    assert "good again from 0.6.2" in ending.out


@pytest.mark.long
def test_a_script_that_is_as_fast_everywhere_is_alike(project: Project) -> None:
    """The error is about all that was compared, not about time."""
    project.write({"report.py": "import time\nprint(time.perf_counter() > 0, 'took 0.5 s')"})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 2
    assert "are alike: both end with ok" in ending.error


@pytest.mark.long
def test_a_warm_call_of_a_case_that_donates_its_arguments_is_timed(project: Project) -> None:
    """Donated arguments must not make the measured time zero."""
    body = CASE.replace("args=", "jit={'donate_argnums': 0}, args=")
    project.write({"cases/numbers/doubling.py": body})
    ends = ("--good", "0.6.0", "--bad", "0.6.1", "--phase", "run")
    ending = project.run("bisect", "numbers/doubled", *ends)
    assert "time of phase run: ambiguous, the ends overlap" in ending.error
    assert "median 0 " not in ending.error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--region", "step", "--metric", "x"), "--region step and --metric x: expected one"),
        (("--metric", "x", "--when", "value"), "--metric x: goes with --when time"),
        (("--metric", "("), "expected a regular expression"),
        (("--phase", "run", "--repeat", "3"), "--repeat: goes with what one look shows"),
    ],
)
def test_contradicting_measurement_options_are_refused(
    project: Project, options: tuple[str, ...], message: str
) -> None:
    """One search measures one thing."""
    project.write({"report.py": "print(1)"})
    ending = project.run("bisect", "report.py", *ENDS, *options)
    assert ending.code == 2
    assert message in ending.err


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("print(1)", "both end with ok, and nothing else that was seen differs; name other ends"),
        ("raise KeyError('axis')", "both end with KeyError: 'axis'"),
    ],
)
def test_bisect_of_equal_ends_exits_2(project: Project, script: str, message: str) -> None:
    """The message names the common outcome."""
    project.write({"report.py": script})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 2
    assert f"are alike: {message}" in ending.error


def test_ends_with_different_errors_search_for_the_bad_one(project: Project) -> None:
    """The failure of the good end is reported as well."""
    script = f"{RELEASE}\nraise (KeyError if release == '0.6.0' else OSError)('wrong')"
    project.write({"report.py": script})
    ending = project.run("bisect", "report.py", *ENDS)
    assert ending.code == 0
    assert "first bad: jax 0.6.1, last good: 0.6.0 (bad: ends with OSError: wrong)" in ending.out
    assert "the good end fails, too, and no point works: it ends with KeyError" in ending.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--good", "0.6.2", "--bad", "0.6.0"), "0.6.2 is newer than --bad 0.6.0; say --find fix"),
        ((*ENDS, "--find", "fix"), "0.6.0 is older than --bad 0.6.2; leave out --find"),
        (("--good", "0.6.0", "--bad", "0.6.0"), "--good and --bad are both 0.6.0, expected two"),
        (("--good", ">=0.6", "--bad", "latest"), "releases, expected one"),
        ((*ENDS, "--when", "exit"), "was to be good, got bad: KeyError"),
    ],
)  # fmt: skip
def test_invalid_ends_are_refused(project: Project, options: tuple[str, ...], message: str) -> None:
    """Swapped, equal or ambiguous ends, and a good end that is bad."""
    project.write({"report.py": "raise KeyError(1)"})
    ending = project.run("bisect", "report.py", *options)
    assert ending.code == 2
    assert message in ending.error


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("gone.py", 2, "gone.py: no such file, expected a Python script or test"),
        ("numbers/gone", 3, "numbers/gone"),
    ],
)
def test_unknown_target_is_refused_before_any_probe(
    project: Project, target: str, code: int, message: str
) -> None:
    """A missing script exits with 2, an unknown case with 3."""
    ending = project.run("bisect", target, *ENDS)
    assert (ending.code, ending.out) == (code, "")
    assert message in ending.error


SINCE_COMMAND = (
    'python -c "from importlib.metadata import version; import time; '
    "late = version('jax') > '0.6.0'; {}\""
)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize(
    ("figure", "deed", "unit"),
    [
        ("time", "time.sleep(late / 2)", "s, between"),
        ("memory", "held = b'x' * (late * 2**28)", "MiB, between"),
    ],
)
def test_bisect_by_time_and_by_memory(project: Project, figure: str, deed: str, unit: str) -> None:
    """Each point is measured until it is decided; medians are reported."""
    target = SINCE_COMMAND.format(deed)
    ending = project.run("bisect", "--command", target, *ENDS, "--when", figure, "--json", "-")
    assert ending.code == 0, ending.err
    answer = read_answer(ending)
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.1")
    assert answer["predicate"]["about"].startswith(f"has {figure} above ")
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


@pytest.mark.long
def test_bisect_script_by_a_fact_of_its_hlo(project: Project) -> None:
    """Every program that the script compiles is inspected, with the flags the script sets."""
    project.write({"gathers.py": GATHERED})
    ending = project.run(
        "bisect", "gathers.py", *ENDS, "--fact", "collectives.all-gather", "--json", "-"
    )
    assert ending.code == 0, ending.err
    answer = read_answer(ending)
    assert (answer["last_good"], answer["first_bad"]) == ("0.6.0", "0.6.1")
    assert answer["predicate"]["about"] == "states collectives.all-gather = 1"


@pytest.mark.long
def test_bisect_case_by_fact_requires_ends_that_differ_in_it(project: Project) -> None:
    """Also facts that gate nothing can be searched."""
    case = ("numbers/doubled", "--good", "0.6.0", "--bad", "0.6.2")
    same = project.run("bisect", *case, "--fact", "ops.multiply")
    assert same.code == 2
    assert "--fact ops.multiply: is 1 at both ends" in same.err
    unknown = project.run("bisect", *case, "--fact", "colours")
    assert unknown.code == 2
    assert "--fact colours: no such fact, expected one of" in unknown.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fact", "ops", "--when", "value"), "--fact ops: goes with --when facts"),
        (("--phase", "run", "--when", "value"), "--phase run: goes with --when time or growth"),
        (("--phase", "dance"), "is not one of"),
    ],
)
def test_contradicting_predicate_options_are_refused(
    project: Project, options: tuple[str, ...], message: str
) -> None:
    """Before any probe, where the contradiction is known by then."""
    ending = bisect_since(project, "pass", *ENDS, *options)
    assert ending.code == 2
    assert message in ending.err
