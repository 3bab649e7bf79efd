"""Warnings, facts and Hypothesis settings of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.suites.suite import Examples
from tests.suites.trials import reports_of, session, write

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.suites.running.collection import TestReport
    from conformance.suites.running.session import PytestSession

WARNS = """\
import warnings

import pytest

warnings.warn("at import", DeprecationWarning)

@pytest.fixture
def shaky():
    warnings.warn("shaky")

def test_quiet(): pass

def test_loud(shaky):
    for _ in range(3):
        warnings.warn("loud", FutureWarning)
"""
EXAMPLES = """\
import os
from hypothesis import HealthCheck, given, settings, strategies as st

seen = []

@given(st.integers())
def test_plain(n):
    seen.append(n)

@settings(max_examples=50, derandomize=False)
@given(st.integers())
def test_own(n):
    seen.append(n)

@given(st.lists(st.integers()))
def test_fails(values):
    assert sum(values) < 1000

def test_told():
    def inner(): pass
    print(len(seen), seen)
    assert 0
"""


def ends(one: PytestSession) -> dict[str, TestReport]:
    """Return how each test of a session ended, by its function."""
    return {name.rpartition("::")[2]: report for name, report in reports_of(one).items()}


def test_warnings_are_counted(tmp_path: Path) -> None:
    """With their location; those of a module are reported with its first test."""
    write(tmp_path, {"test_one.py": WARNS})
    seen = ends(session(tmp_path, "-W", "always"))
    (first,) = seen["test_quiet"].warnings
    assert (first["category"], first["message"]) == ("DeprecationWarning", "at import")
    shaky, loud = seen["test_loud"].warnings
    assert (shaky["category"], shaky["message"], shaky["count"]) == ("UserWarning", "shaky", 1)
    assert (loud["category"], loud["count"]) == ("FutureWarning", 3)
    assert loud["where"] == f"{tmp_path}/test_one.py:15"


def test_warnings_of_conftest_are_reported_with_the_collection(tmp_path: Path) -> None:
    """Once."""
    write(tmp_path, {
        "conftest.py": "import warnings\n\ndef pytest_configure(config):\n"
        "    config.issue_config_time_warning(UserWarning('mine'), 1)\n",
        "test_one.py": "def test_one(): pass\n",
    })  # fmt: skip
    one = session(tmp_path)
    assert [warning["message"] for warning in one.info.facts["warnings"]] == ["mine"]
    one.close()


def test_facts_of_the_tested_package(tmp_path: Path) -> None:
    """Missing facts are omitted."""
    write(tmp_path, {"test_one.py": "def test_one(): pass\n"})
    wanted = {"version": "sys:version_info.major", "none": "sys:nothing", "gone": "nothing:x"}
    for forks in (False, True):
        one = session(tmp_path, facts=wanted, forks=forks)
        assert one.info.facts["facts"] == {"version": "3"}
        assert one.info.facts["workers"] == ("forked" if forks else "processes")
        one.close()


def test_process_with_threads_is_not_forked(tmp_path: Path) -> None:
    """Its locks would never be released in a child; the reason is reported."""
    write(tmp_path, {
        "test_one.py": "import threading, time\n\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n\n"
        "def test_one(): pass\n"
    })  # fmt: skip
    one = session(tmp_path, forks=True)
    assert one.info.facts["workers"] == "processes"
    assert one.info.facts["not forked"] == "2 threads after collecting"
    one.close()


def examples_of(folder: Path, **how: Any) -> tuple[dict[str, TestReport], list[str]]:
    """Return the outcomes of tests of Hypothesis, and the examples that were drawn."""
    write(folder, {"test_one.py": EXAMPLES})
    seen = ends(session(folder, examples=Examples(**how)))
    number, _, values = seen["test_told"].out.partition(" ")
    return seen, [number, values]


def test_examples_are_reproducible(tmp_path: Path) -> None:
    """Also with settings of the test; a seed gives others."""
    _, first = examples_of(tmp_path, number=7)
    _, again = examples_of(tmp_path, number=7)
    assert first == again
    assert first[0] == "14"
    _, seeded = examples_of(tmp_path, number=7, seed=3)
    assert seeded[1] != first[1]
    assert examples_of(tmp_path, number=7, seed=3)[1] == seeded
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test_one.py"]


def test_falsifying_example_is_reported(tmp_path: Path) -> None:
    """As Hypothesis prints it; shrunk only on request."""
    seen, _ = examples_of(tmp_path)
    example = seen["test_fails"].falsifying
    assert example.partition(": ")[2].startswith("test_fails(")
    small, _ = examples_of(tmp_path, shrink=True)
    assert "values=[1000]" in small["test_fails"].falsifying
    assert "values=[1000]" not in example


def test_hypothesis_is_optional(tmp_path: Path) -> None:
    """It is imported only if a test imports it."""
    text = "import sys\n\ndef test_one():\n    assert 'hypothesis' not in sys.modules\n"
    write(tmp_path, {"test_one.py": text})
    assert ends(session(tmp_path, examples=Examples(number=3)))["test_one"].outcome == "passed"
