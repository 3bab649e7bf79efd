"""From runs of a suite to its history."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.runs.loader import load_run
from conformance.errors import UsageError
from conformance.model.case import Deviation
from conformance.model.run import RunCase
from conformance.report.suites.conformance_history import OTHER, SuiteHistory, SuiteOutcome
from conformance.report.suites.conformance_runs import (
    explain_incomplete,
    make_suite_history,
    merge_histories,
)
from tests.report.runs import Directory
from tests.report.suite_runs import SUITE, suite_run

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.runs.loader import LoadedRun

OLD, NEW = ("0.5.3", "0.6.2"), ("0.6.2", "0.7.0")


def run(folder: Path, releases: tuple[str, ...], tests: dict[str, str], **more: Any) -> LoadedRun:
    """Return a run of a suite."""
    return load_run(suite_run(folder, releases, tests, **more).run)


def outcomes(history: SuiteHistory, test: str) -> list[str]:
    """Return how a test ended, by release."""
    return [history.tests[test].of(held.release).outcome for held in history.releases]


def test_a_run_becomes_a_history(tmp_path: Path) -> None:
    """Each test by release; what the suite does not have there is absent, what is host is out."""
    tests = {"a/one": "pk", "a/two": "Fs", "b/three": "-?", "b/four": "p "}
    found = make_suite_history(run(tmp_path / "r", OLD, tests), {"0.5.3": "2025-03-19"})
    assert outcomes(found, "a/one") == ["passed", "known"]
    assert outcomes(found, "a/two") == ["failed", "skipped"]
    assert outcomes(found, "b/three") == ["absent", "flaky"]
    assert outcomes(found, "b/four") == ["passed", "absent"]
    known = found.tests["a/one"].of("0.6.2")
    assert (known.reason, known.issue) == ("signs of zeros are lost", "jax-ml/jax#1")
    assert known.why == "TypeError: 0.0 is not -0.0"
    assert found.tests["a/two"].of("0.6.2").why == "no such extension"
    assert [(one.release, one.date, one.standard) for one in found.releases] == [
        ("0.5.3", "2025-03-19", "2024.12"), ("0.6.2", "", "2024.12"),
    ]  # fmt: skip
    assert (found.place, found.groups) == ("cpu8", ("a", "b"))


def test_groups_come_from_the_given_function(tmp_path: Path) -> None:
    """Else those of the run; a test of no group is among the others."""
    loaded = run(tmp_path / "r", ("0.6.2",), {"a/one": "p"})
    assert make_suite_history(loaded, {}, lambda _: "signs").groups == ("signs",)
    assert make_suite_history(loaded, {}, lambda _: "").groups == ("a",)
    bare = run(tmp_path / "s", ("0.6.2",), {"a/one": "p"}, cases={"a/one": RunCase(kind="test")})
    assert make_suite_history(bare, {}).groups == (OTHER,)


def test_a_pass_under_a_deviation_that_may_pass_is_known(tmp_path: Path) -> None:
    """A test that passes by chance under such a deviation counts as known in every run."""
    sometimes = RunCase(kind="test", deviations=(Deviation(reason="draws", may_pass=True),))
    loaded = run(tmp_path / "r", OLD, {"a/one": "pk"}, cases={"a/one": sometimes})
    assert outcomes(make_suite_history(loaded, {}), "a/one") == [
        SuiteOutcome.KNOWN,
        SuiteOutcome.KNOWN,
    ]


def test_a_run_is_judged_by_current_deviations(tmp_path: Path) -> None:
    """Known failures that were accepted since ask for no new run; others are unexpected again."""
    loaded = run(tmp_path / "r", OLD, {"a/one": "Fk", "a/two": "pF", "a/three": "?s"})
    known = Deviation(releases="<0.6", error="TypeError", reason="lost", issue="a/b#1")
    other = Deviation(error="ValueError", reason="another error")
    found = make_suite_history(loaded, {}, None, {"a/one": (other, known), "a/two": (other,)})
    assert outcomes(found, "a/one") == ["known", "failed"]
    assert outcomes(found, "a/two") == ["passed", "failed"]
    assert outcomes(found, "a/three") == ["flaky", "skipped"]
    first = found.tests["a/one"].of("0.5.3")
    assert (first.reason, first.issue) == ("lost", "a/b#1")
    assert outcomes(make_suite_history(loaded, {}), "a/one") == ["failed", "known"]


def test_runs_are_merged(tmp_path: Path) -> None:
    """Releases come in order; those that are run again replace what was there, tests and all."""
    old = make_suite_history(run(tmp_path / "a", OLD, {"a/one": "pF", "a/gone": "pp"}), {})
    new = make_suite_history(run(tmp_path / "b", NEW, {"a/one": "pk", "a/new": "-p"}), {})
    both = merge_histories(old, new)
    assert [held.release for held in both.releases] == ["0.5.3", "0.6.2", "0.7.0"]
    assert outcomes(both, "a/one") == ["passed", "passed", "known"]
    assert outcomes(both, "a/gone") == ["passed", "absent", "absent"]
    assert outcomes(both, "a/new") == ["absent", "absent", "passed"]
    assert merge_histories(both, new) == both
    assert merge_histories(None, new) == new
    backwards = merge_histories(new, old)
    assert [held.release for held in backwards.releases] == ["0.5.3", "0.6.2", "0.7.0"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"revision": "6" * 40}, "another revision: 5+ is what is kept, 6+ what is new"),
        ({"settings": {"max_examples": 50}}, "another settings: max_examples 5, standard claimed"),
        ({"name": "other"}, "another suite"),
    ],
)
def test_histories_of_other_settings_are_not_merged(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    """A difference between two revisions says nothing about JAX."""
    old = make_suite_history(run(tmp_path / "a", OLD, {"a/one": "pp"}), {})
    other = run(tmp_path / "b", NEW, {"a/one": "pp"}, suite=replace(SUITE, **change))
    with pytest.raises(UsageError, match=said):
        merge_histories(old, make_suite_history(other, {}))


@pytest.mark.parametrize(
    ("tests", "info", "said"),
    [
        ({"a/one": "pp"}, {}, ""),
        ({"a/one": "pp"}, {"suite": replace(SUITE, complete=False)}, "only a part of the suite"),
        ({"a/one": "pp"}, {"finished": ""}, "it did not end"),
        (
            {"a/one": "pp"},
            {"plan": (("a/two", "x"),)},
            "1 test without a result, such as a/two on x",
        ),
        (
            {"a/one": "p!"},
            {},
            "1 test could not be run, such as a/one on jax0.6.2-py311-cpu8: no space",
        ),
    ],
)
def test_the_reason_of_an_incomplete_run_is_given(
    tmp_path: Path, tests: dict[str, str], info: dict[str, Any], said: str
) -> None:
    """It is told what is missing."""
    told = explain_incomplete(run(tmp_path / "r", OLD, tests, **info))
    assert told.startswith(said)
    assert bool(told) is bool(said)


def test_a_run_without_a_suite_is_refused(tmp_path: Path) -> None:
    """Nor of several places, nor of a release twice."""
    with pytest.raises(UsageError, match="is no run of a suite"):
        make_suite_history(Directory(tmp_path / "r").job("f/a", "jax0.6.2-py311-cpu8").loaded(), {})
    two = Directory(tmp_path / "s").job("a/one", "jax0.6.2-py311-cpu8")
    two.job("a/one", "jax0.6.2-py311-cpu4")
    with pytest.raises(UsageError, match="releases of one platform, got cpu4, cpu8"):
        make_suite_history(two.loaded(suite=SUITE), {})
    twice = Directory(tmp_path / "t").job("a/one", "jax0.6.2-py311-cpu8")
    twice.job("a/one", "jax0.6.2-py311-cpu8-x64").job("a/one", "jax0.7.0-py311-cpu8-x64")
    with pytest.raises(UsageError, match="got cpu8, cpu8 x64"):
        make_suite_history(twice.loaded(suite=SUITE), {})


def test_a_nightly_is_left_out(tmp_path: Path) -> None:
    """It says nothing of what was released."""
    loaded = run(tmp_path / "r", ("0.6.2", "0.7.0.dev20250601"), {"a/one": "pF"})
    assert [held.release for held in make_suite_history(loaded, {}).releases] == ["0.6.2"]
