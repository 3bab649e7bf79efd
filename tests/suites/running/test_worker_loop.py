"""The loop of a worker: every test ends, also if its session is killed."""

from __future__ import annotations

import textwrap
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.record_judge import Judge, make_record
from conformance.engine.scheduler import JobUnits
from conformance.errors import InfrastructureError
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.suites.running.worker_loop import IN_A_ROW
from tests.suites.trials import Pool, jobs_of, launch, loop_of, run, run_in, write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.engine.job import FinishedJob

NASTY = """\
import os, signal, time

def test_a(): pass
def test_segfault(): os.kill(os.getpid(), signal.SIGSEGV)
def test_b(): pass
def test_exit(): os._exit(5)
def test_hang(): time.sleep(100)
def test_closes(): os.closerange(3, 100)
def test_c(): pass
"""


def outcomes(found: Mapping[str, FinishedJob]) -> dict[str, Outcome]:
    """Return how each test ended."""
    return {name: one.outcome for name, one in found.items()}


def message_of(one: FinishedJob) -> str:
    """Return the message of how a test ended."""
    assert one.error is not None
    return one.error.message


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("forks", [False, True])
def test_end_of_a_session_ends_one_test(tmp_path: Path, *, forks: bool) -> None:
    """Later tests run in the next session."""
    found = run_in(write(tmp_path, {"test_one.py": NASTY}), timeout=2.0, forks=forks)
    good = dict.fromkeys(("test_a", "test_b", "test_c"), Outcome.OK)
    crashed = dict.fromkeys(("test_segfault", "test_exit", "test_closes"), Outcome.CRASHED)
    assert outcomes(found) == {**good, **crashed, "test_hang": Outcome.TIMED_OUT}
    assert message_of(found["test_segfault"]) == "the process was ended by SIGSEGV"
    assert message_of(found["test_exit"]) == "the process exited with status 5"
    assert message_of(found["test_hang"]) == "no end within the timeout of 2 s"


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("forks", [False, True])
def test_test_that_ends_pytest_crashes(tmp_path: Path, *, forks: bool) -> None:
    """The other tests are run."""
    text = "import pytest\n\ndef test_a():\n    pytest.exit('enough')\n\ndef test_b(): pass\n"
    found = run_in(write(tmp_path, {"test_one.py": text}), forks=forks)
    assert outcomes(found) == {"test_a": Outcome.CRASHED, "test_b": Outcome.OK}
    assert message_of(found["test_a"]) == "the test ended the session: Exit: enough"


def test_test_that_kills_the_fork_server_is_retried_once(tmp_path: Path) -> None:
    """In a new process, like all later tests."""
    text = (
        "import os, signal, time\n\n"
        "def test_a(): pass\n\n"
        "def test_kills():\n    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(5)\n\n"
        "def test_b(): pass\n"
    )
    found = run_in(write(tmp_path, {"test_one.py": text}), forks=True)
    assert outcomes(found) == {
        "test_a": Outcome.OK, "test_kills": Outcome.CRASHED, "test_b": Outcome.OK,
    }  # fmt: skip


def test_vanished_test_is_not_run(tmp_path: Path) -> None:
    """It is neither skipped nor lost."""
    text = (
        "import os, pytest\n\n"
        "@pytest.mark.parametrize('n', [os.getpid()])\ndef test_any(n): pass\n\n"
        "def test_fine(): pass\n"
    )
    jobs = jobs_of(write(tmp_path, {"test_one.py": text}))
    found = run(jobs, lambda _: launch(tmp_path), test_names={job.case.name for job in jobs})
    assert {one.outcome for one in found} == {Outcome.NOT_RUN, Outcome.OK}
    (lost,) = (one for one in found if one.outcome is Outcome.NOT_RUN)
    assert "its name must not change" in message_of(lost)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("forks", [False, True])
def test_memory_limit_counts_the_test_alone(tmp_path: Path, *, forks: bool) -> None:
    """A test is retried if earlier tests may have used the memory."""
    text = "import os, time\n\nkept = []\n"
    for name, size in (("a", 300), ("b", 300), ("c", 600)):
        take = f"kept.append(bytearray(os.urandom(1)) * ({size} << 20))"
        text += f"\ndef test_{name}():\n    {take}\n    time.sleep(0.6)\n"
    found = run_in(write(tmp_path, {"test_one.py": text}), memory=500, forks=forks)
    assert outcomes(found) == {
        "test_a": Outcome.OK, "test_b": Outcome.OK, "test_c": Outcome.OUT_OF_MEMORY,
    }  # fmt: skip


def test_uncollected_test_is_unsupported(tmp_path: Path) -> None:
    """A test that the cell lacks, and one of a module that cannot be imported."""
    write(tmp_path, {
        "test_fine.py": "def test_a(): pass\n",
        "test_broken.py": "import nothing_of_that_name\n\ndef test_a(): pass\n",
        "test_old.py": "import json.nothing_of_that_name\n\ndef test_d(): pass\n",
        "test_left_out.py": "import pytest\npytest.skip('not here', allow_module_level=True)\n",
    })  # fmt: skip
    names = ("test_fine.py::test_a", "test_fine.py::test_gone", "test_broken.py::test_b",
             "test_old.py::test_d", "test_left_out.py::test_c", "test_fine.py")  # fmt: skip
    found = run_in(tmp_path, *names)
    assert outcomes(found) == {
        "test_a": Outcome.OK, "test_gone": Outcome.UNSUPPORTED, "test_b": Outcome.INFRA,
        "test_d": Outcome.RAISED, "test_c": Outcome.UNSUPPORTED, "test_fine.py": Outcome.OK,
    }  # fmt: skip
    assert message_of(found["test_gone"]) == "is not collected in this cell"
    assert message_of(found["test_c"]) == "not here"
    assert found["test_b"].stage is Stage.IMPORT
    assert message_of(found["test_b"]).endswith("e.g. --with nothing_of_that_name")
    old = found["test_d"].error
    assert old is not None
    assert old.signature.startswith("ModuleNotFoundError: No module named 'json.nothing_of")


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(
    ("conftest", "outcome", "message"),
    [
        ("raise KeyError('this')", Outcome.RAISED, "'this'"),
        ("import os; os._exit(3)", Outcome.CRASHED, "the process exited with status 3"),
        ("pytest_plugins = ['nothing_of_that_name']", Outcome.RAISED, "nothing_of_that_name"),
        ("def pytest_collection(): raise ValueError('hook')", Outcome.RAISED, "hook"),
        ("def pytest_runtestloop(): raise ValueError('loop')", Outcome.RAISED, "loop"),
    ],
)
def test_failed_session_ends_every_test(
    tmp_path: Path, conftest: str, outcome: Outcome, message: str
) -> None:
    """With the message of pytest."""
    jobs = jobs_of(write(tmp_path, {"test_one.py": "def test_a(): pass\ndef test_b(): pass\n"}))
    write(tmp_path, {"conftest.py": conftest})
    found = run(jobs, lambda _: launch(tmp_path))
    assert [one.outcome for one in found] == [outcome] * 2
    assert message in message_of(found[0])


def test_unknown_argument_of_pytest_is_reported(tmp_path: Path) -> None:
    """With pytest's message, in one line."""
    jobs = jobs_of(write(tmp_path, {"test_one.py": "def test_a(): pass\n"}))
    (found,) = run(jobs, lambda _: launch(tmp_path, "--nothing"))
    assert found.error is not None
    assert found.error.type == "UsageError"
    assert found.error.message.startswith("unrecognized arguments: --nothing")


def test_file_is_abandoned_after_repeated_crashes(tmp_path: Path) -> None:
    """With a message; other files are run."""
    number = IN_A_ROW + 3
    crash = "import os\n" + "".join(f"def test_{n}(): os._exit(9)\n" for n in range(number))
    write(tmp_path, {"test_a.py": crash, "test_b.py": "def test_fine(): pass\n"})
    found = run_in(tmp_path)
    ended = list(outcomes(found).values())
    assert ended.count(Outcome.CRASHED) == IN_A_ROW
    assert ended.count(Outcome.NOT_RUN) == 3
    assert found["test_fine"].outcome is Outcome.OK


def test_test_that_a_plugin_replaces_ends(tmp_path: Path) -> None:
    """Though pytest never reports it."""
    jobs = jobs_of(write(tmp_path, {"test_one.py": "def test_a(): pass\ndef test_b(): pass\n"}))
    write(tmp_path, {
        "conftest.py": "def pytest_collection_finish(session):\n    session.items[:] = [\n"
        "        type(item).from_parent(item.parent, name=item.name + '_other', callobj=item.obj)\n"
        "        for item in session.items\n    ]\n",
    })  # fmt: skip
    found = run(jobs, lambda _: launch(tmp_path))
    assert [one.outcome for one in found] == [Outcome.UNSUPPORTED] * 2
    assert message_of(found[0]) == "is not collected in this cell"


def test_cell_without_pytest_is_infra(tmp_path: Path) -> None:
    """With the output of the session."""
    jobs = jobs_of(write(tmp_path, {"test_one.py": "def test_a(): pass\n"}))
    write(tmp_path, {"away/pytest.py": "raise ImportError('no pytest here')\n"})
    one = launch(tmp_path)
    away = {**one.environment, "PYTHONPATH": str(tmp_path / "away")}
    with pytest.raises(InfrastructureError, match="no pytest here"):
        run(jobs, lambda _: replace(one, environment=away))


def test_verdicts_of_tests(tmp_path: Path) -> None:
    """Failures deviate, declared ones are known, and skips are excluded."""
    write(tmp_path, {
        "test_one.py": "import pytest\n\n"
        "def test_good(): pass\n\n"
        "def test_bad(): assert 0\n\n"
        "@pytest.mark.xfail(reason='known')\ndef test_declared(): assert 0\n\n"
        "@pytest.mark.xfail\ndef test_better(): pass\n\n"
        "@pytest.mark.xfail(strict=True)\ndef test_strict(): pass\n\n"
        "@pytest.mark.skip(reason='no need')\ndef test_skipped(): pass\n\n"
        "@pytest.fixture\ndef tidy():\n    yield\n    raise ValueError('after')\n\n"
        "def test_teardown(tidy): pass\n\n"
        "@pytest.fixture\ndef broken():\n    raise ValueError('before')\n\n"
        "def test_setup(broken): pass\n"
    })  # fmt: skip
    blobs = BlobStore(tmp_path / "blobs")
    judge = Judge(blobs)
    records = {
        name: judge.judge(one.job, make_record(one, blobs))
        for name, one in run_in(tmp_path).items()
    }
    deviates, conforms = Conformance.DEVIATES, Conformance.CONFORMS
    assert {name: (one.verdict, one.conformance) for name, one in records.items()} == {
        "test_good": (Verdict.MATCH, conforms),
        "test_bad": (Verdict.REGRESSED, deviates),
        "test_declared": (Verdict.KNOWN, deviates),
        "test_better": (Verdict.MATCH, conforms),
        "test_strict": (Verdict.REGRESSED, deviates),
        "test_skipped": (Verdict.EXCLUDED, Conformance.UNKNOWN),
        "test_teardown": (Verdict.REGRESSED, deviates),
        "test_setup": (Verdict.REGRESSED, deviates),
    }
    assert records["test_skipped"].reasons == ("no need",)
    assert records["test_setup"].stage is Stage.BUILD
    assert blobs.get(records["test_declared"].artifacts["xfail"]) == b"known"


def test_neighbour_of_a_killer_of_the_fork_server_is_retried(tmp_path: Path) -> None:
    """Both tests are retried in new sessions."""
    killer = (
        "import os, signal, time\ndef test_kills():\n    time.sleep(0.5)\n"
        "    os.kill(os.getppid(), signal.SIGKILL)\n    time.sleep(5)\n"
    )
    calm = "import time\ndef test_calm():\n    time.sleep(2)\n"
    jobs = jobs_of(write(tmp_path, {"test_k.py": killer, "test_c.py": calm}))
    pool, units = (
        Pool(lambda forks: launch(tmp_path, forks=forks)),
        JobUnits([[job] for job in jobs]),
    )

    def work(key: str) -> list[FinishedJob]:
        loop = loop_of(pool, units, key)
        try:
            return list(loop.run())
        finally:
            loop.close()

    with ThreadPoolExecutor(2) as threads:
        both = [threads.submit(work, key) for key in "ab"]
        found = {one.job.case.name: one.outcome for part in both for one in part.result()}
    pool.close()
    assert found == {
        "test_k.py::test_kills": Outcome.CRASHED, "test_c.py::test_calm": Outcome.OK,
    }  # fmt: skip


OWN_LOOP = """\
def pytest_runtestloop(session):
    for item in session.items:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    return True
"""


def test_suite_with_its_own_loop(tmp_path: Path) -> None:
    """The results of the tests that it chose count; a crash ends one test."""
    text = "import os\n\ndef test_a(): pass\n\ndef test_exit(): os._exit(5)\n"
    text += "\ndef test_b(): assert 0\n"
    write(tmp_path, {"test_one.py": text, "test_two.py": "def test_c(): pass\n"})
    jobs = jobs_of(tmp_path)
    write(tmp_path, {"conftest.py": OWN_LOOP})
    found = {one.job.case.name.partition("::")[2]: one for one in run(
        jobs, lambda _: launch(tmp_path)
    )}  # fmt: skip
    assert outcomes(found)["test_a"] is Outcome.OK
    assert outcomes(found)["test_exit"] is Outcome.CRASHED
    assert len(found) == len(jobs)


@pytest.mark.long(keep=1)
@pytest.mark.parametrize("forks", [False, True])
def test_memory_limit_counts_child_processes(tmp_path: Path, *, forks: bool) -> None:
    """Also children that left the process group."""
    source = """\
        import os, time
        def test_takes():
            if os.fork() == 0:
                os.setsid()
                kept = b"x" * (600 << 20)
                time.sleep(60)
            time.sleep(20)
    """
    write(tmp_path, {"test_memory.py": textwrap.dedent(source)})
    assert run_in(tmp_path, memory=400, forks=forks)["test_takes"].outcome is Outcome.OUT_OF_MEMORY
