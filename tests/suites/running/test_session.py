"""A pytest session: its messages, and the ways in which it ends."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.suites.trials import collected, reports_of, session, write

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from conformance.suites.running.collection import TestReport

    Reports = dict[str, TestReport]

ODD = """\
import pytest

@pytest.mark.parametrize("text", ["a b", "x[1]", "\\u00fc", "two\\nlines", "a::b", "a/b", "", "#2"])
def test_odd(text):
    pass

@pytest.mark.parametrize("x", [1, 2], ids=["same", "same"])
def test_same(x):
    pass

def test_surrogate():
    raise ValueError("\\ud800")
"""

PIPES = (
    "(int(n) for n in os.listdir('/proc/self/fd') if int(n) > 2 and "
    "os.path.realpath(f'/proc/self/fd/{n}').count('pipe:'))"
)
GARBLE = f"""
    for n in {PIPES}:
        with contextlib.suppress(OSError):
            os.write(n, b'}}' * 100)
    time.sleep(5)"""
"""Writes into every pipe that is open."""


def ends(folder: Path, *more: str, tests: Sequence[str] = (), **options: Any) -> Reports:
    """Return how each test ended, by the name of its function and parameters."""
    found = reports_of(session(folder, *more, **options), *tests)
    return {name.partition("::")[2]: report for name, report in found.items()}


def test_unusual_ids_are_reported_unchanged(tmp_path: Path) -> None:
    """A test is reported by its collected name, with any characters."""
    write(tmp_path, {"test_odd.py": ODD})
    names = [test.name for test in collected(tmp_path).tests]
    assert len(set(names)) == 11
    seen = ends(tmp_path, tests=[names[0], names[-2]])
    assert sorted(seen) == sorted(name.partition("::")[2] for name in (names[0], names[-2]))
    (end,) = ends(tmp_path, tests=names[-1:]).values()
    assert (end.outcome, end.message) == ("failed", "\\ud800")


def test_equal_node_ids_are_numbered(tmp_path: Path) -> None:
    """Each can be run alone."""
    write(tmp_path, {"test_one.py": "def test_one(): pass\n"})
    twice = ("--keep-duplicates", str(tmp_path / "test_one.py"))
    names = [test.name for test in collected(tmp_path, *twice).tests]
    assert names == ["test_one.py::test_one", "test_one.py::test_one#2"]
    assert list(ends(tmp_path, *twice, tests=names[1:])) == ["test_one#2"]


def test_location_of_a_test(tmp_path: Path) -> None:
    """Its file, its line, and the root of node ids."""
    write(tmp_path, {"pytest.ini": "[pytest]\n", "sub/test_one.py": "\n\ndef test_one(): pass\n"})
    found = collected(tmp_path / "sub")
    assert (found.root, found.ini) == (str(tmp_path), str(tmp_path / "pytest.ini"))
    (test,) = found.tests
    assert (test.name, test.line) == ("sub/test_one.py::test_one", 3)
    assert test.file == str(tmp_path / "sub" / "test_one.py")


def test_uncollected_modules_are_reported(tmp_path: Path) -> None:
    """With the original exception; skipped modules too."""
    write(tmp_path, {
        "test_broken.py": "import os\nimport nothing_of_that_name\n",
        "test_skipped.py": "import pytest\npytest.importorskip('nothing_of_that_name')\n",
        "test_fine.py": "def test_fine(): pass\n",
    })  # fmt: skip
    found = collected(tmp_path)
    assert [test.name for test in found.tests] == ["test_fine.py::test_fine"]
    broken, skipped = sorted(found.problems, key=lambda one: one.node)
    assert (broken.node, broken.broken, broken.type) == (
        "test_broken.py", True, "ModuleNotFoundError",
    )  # fmt: skip
    assert broken.message == "No module named 'nothing_of_that_name'"
    assert broken.where == f"{tmp_path}/test_broken.py:2"
    assert not skipped.broken
    assert "nothing_of_that_name" in skipped.reason


@pytest.mark.long(keep=4)
@pytest.mark.parametrize(
    ("body", "outcome", "said"),
    [
        ("pass", "passed", ""),
        ("raise KeyError('x')", "failed", "'x'"),
        ("import sys; sys.exit(3)", "failed", "3"),
        ("import pytest; pytest.skip('no need')", "skipped", "no need"),
        ("import pytest; pytest.xfail('known')", "xfailed", "known"),
        ("import pytest; pytest.exit('enough')", "left", "Exit: enough"),
        ("raise KeyboardInterrupt", "left", "KeyboardInterrupt"),
        ("import os; os.fork() or os._exit(0)", "passed", ""),
    ],
)
def test_outcomes_of_pytest_are_reported(
    tmp_path: Path, body: str, outcome: str, said: str
) -> None:
    """A forked child of a test reports nothing."""
    write(tmp_path, {"test_one.py": f"def test_one():\n    {body}\n"})
    (end,) = ends(tmp_path).values()
    assert end.outcome == outcome
    assert said in (end.reason or end.message)


def test_failure_has_exception_traceback_and_output(tmp_path: Path) -> None:
    """The end of the output is kept."""
    body = "    print('x' * 100_000)\n    print('the end')\n    assert 1 == 2, 'no'\n"
    write(tmp_path, {"test_one.py": f"def test_one():\n{body}"})
    (end,) = ends(tmp_path).values()
    assert (end.type, end.phase) == ("AssertionError", "call")
    assert end.message.startswith("no\nassert 1 == 2")
    assert end.where == f"{tmp_path}/test_one.py:4"
    assert "assert 1 == 2" in end.text
    ((frame,),) = (one["frames"] for one in end.frames)
    assert (frame["file"], frame["line"]) == (f"{tmp_path}/test_one.py", 4)
    assert (frame["source"], frame["library"]) == ("assert 1 == 2, 'no'", "")
    assert end.out.endswith("the end\n")
    assert len(end.out) < 20_000


def test_configuration_of_a_suite_applies(tmp_path: Path) -> None:
    """Markers, fixtures and options of its conftest; but `-x` ends nothing."""
    write(tmp_path, {
        "pytest.ini": "[pytest]\naddopts = -x --strict-markers\nmarkers = mine\n",
        "conftest.py": "import pytest\n\n"
        "def pytest_addoption(parser):\n    parser.addoption('--number', type=int)\n\n"
        "@pytest.fixture\ndef number(request):\n    return request.config.getoption('number')\n",
        "test_one.py": "import pytest\n\n@pytest.mark.mine\ndef test_a(number):\n"
        "    assert number == 4\n\ndef test_b(number):\n    assert number == 3\n\n"
        "@pytest.mark.mine\ndef test_c(): pass\n",
    })  # fmt: skip
    seen = ends(tmp_path, "--number", "3")
    assert {name: one.outcome for name, one in seen.items()} == {
        "test_a": "failed", "test_b": "passed", "test_c": "passed",
    }  # fmt: skip
    assert list(ends(tmp_path, "--number", "3", "-m", "mine")) == ["test_a", "test_c"]


def test_session_leaves_no_files(tmp_path: Path) -> None:
    """Neither bytecode nor the cache of pytest."""
    write(tmp_path, {"conftest.py": "", "test_one.py": "def test_one(cache): pass\n"})
    before = sorted(tmp_path.rglob("*"))
    assert ends(tmp_path)["test_one"].outcome == "passed"
    assert sorted(tmp_path.rglob("*")) == before


def test_the_folder_of_the_plugin_is_not_importable(tmp_path: Path) -> None:
    """A suite with a module `session` imports its own."""
    text = "import importlib.util\n\ndef test_one():\n"
    text += "    assert importlib.util.find_spec('hooks') is None\n"
    write(tmp_path, {"test_one.py": text})
    assert ends(tmp_path)["test_one"].outcome == "passed"


@pytest.mark.parametrize("forks", [False, True])
def test_standard_input_is_empty(tmp_path: Path, *, forks: bool) -> None:
    """Also with `-s`: a test cannot read the requests."""
    text = "import os\n\ndef test_a():\n    assert os.read(0, 1) == b''\n\ndef test_b(): pass\n"
    write(tmp_path, {"test_one.py": text})
    seen = ends(tmp_path, "-s", forks=forks)
    assert {name: one.outcome for name, one in seen.items()} == {
        "test_a": "passed", "test_b": "passed",
    }  # fmt: skip


@pytest.mark.long(keep=5)
@pytest.mark.parametrize("forks", [False, True])
@pytest.mark.parametrize(
    ("body", "cut", "status"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "", (None, 11)),
        ("os._exit(5)", "", (5, None)),
        ("time.sleep(100)", "timeout", (None, 9)),
        ("big = bytearray(os.urandom(1)) * 2**29; time.sleep(5)", "memory", (None, 9)),
        ("os.system('yes > /proc/self/fd/2')", "output", (None, 9)),
        (GARBLE, "garbled", (None, 9)),
    ],
)  # fmt: skip
def test_early_end_of_a_session_is_reported(
    tmp_path: Path, body: str, cut: str, status: tuple[int | None, int | None], *, forks: bool
) -> None:
    """With its child processes; earlier reports stay valid."""
    text = "import contextlib, os, signal, time\n\ndef test_a(): pass\n\n"
    write(tmp_path, {"test_one.py": f"{text}def test_b():\n    {body}\n"})
    capture = ("-s",) if cut == "output" else ()
    # On a busy host only what is to run into it may be near a limit of time.
    timeout = 2.0 if cut == "timeout" else 600.0
    one = session(tmp_path, *capture, timeout=timeout, memory=400, forks=forks)
    start = time.monotonic()
    first, _ = one.run("test_one.py::test_a", "test_one.py::test_b", "one")
    assert first
    assert first.outcome == "passed"
    report, end = one.run("test_one.py::test_b", "", "one")
    assert report is None
    assert (end.ended, end.exit, end.signal) == (cut, *status)
    one.close()
    assert time.monotonic() - start < 120


def test_closing_a_session_ends_its_tests(tmp_path: Path) -> None:
    """Running tests are killed."""
    write(tmp_path, {"test_one.py": "import time\n\ndef test_a():\n    time.sleep(600)\n"})
    one = session(tmp_path, timeout=600.0)
    start = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(one.run, "test_one.py::test_a", "", "one")
        time.sleep(0.5)
        one.close()
        assert running.result()[0] is None
    assert time.monotonic() - start < 60
