"""A conformance history as Markdown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.engine.runs.loader import load_run
from conformance.report.suites.conformance_history import (
    SuiteHistory,
    SuiteOutcome,
    SuiteResult,
    TrackedTest,
)
from conformance.report.suites.conformance_markdown import fold_list, join_tests, render_conformance
from conformance.report.suites.conformance_runs import make_suite_history
from tests.report.suite_runs import suite_run

if TYPE_CHECKING:
    from pathlib import Path

RELEASES = ("0.5.3", "0.6.2", "0.7.0")
TESTS = {
    "array object/t/test_signs.py::test_add[a|b]": "pkk",
    "array object/t/test_signs.py::test_add[c]": "kpp",
    "fft/t/test_fft.py::test_shift": "-pF",
    "fft/t/test_fft.py::test_wide": "pps",
}


def told(folder: Path, **more: TrackedTest) -> str:
    """Return the page of a run, with cases of our own."""
    standards = {"0.5.3": "2023.12"}
    history = make_suite_history(
        load_run(suite_run(folder, RELEASES, TESTS, standards=standards).run), {}
    )
    own_cases = {f"own/{name}": followed for name, followed in more.items()}
    return render_conformance(replace(history, own_cases=own_cases))


def test_releases_and_groups(tmp_path: Path) -> None:
    """The newest first; a share where not all pass, rounded down; what is skipped is none."""
    text = told(tmp_path)
    assert text.startswith("# Signs: jax 0.5.3 to 0.7.0\n")
    assert "| 0.7.0 |  | 2024.12 | **1** of 3, 33.3 % | 1 | **1** | 1 | 1 regressed |" in text
    assert "| release | array object | fft |" in text
    assert "| 0.6.2 | **1** of 2 | 2 |" in text
    assert "| 0.7.0 | **1** of 2 | **0** of 1 |" in text
    assert text.index("| 0.7.0 |") < text.index("| 0.6.2 |") < text.index("| 0.5.3 |")


def test_changes_of_a_release_are_listed(tmp_path: Path) -> None:
    """By release, with the tests; another version of the standard is told."""
    text = told(tmp_path)
    change = text[text.index("**0.6.2 against 0.5.3") :]
    assert change.startswith(
        "**0.6.2 against 0.5.3: 1 regressed, 1 fixed, 1 added, held against 2024.12**"
    )
    assert "- it claims version 2024.12 of the standard, the one before 2023.12" in change
    assert "- ▼ regressed, array object: `test_signs.py::test_add` (`a|b`)" in change
    assert "- added, fft: `test_fft.py::test_shift`" in change


def test_failures_of_the_newest_release_are_listed(tmp_path: Path) -> None:
    """The unexpected apart from the known, with what it raised where no reason is declared."""
    text = told(tmp_path)
    after = text[text.index("## Unexpected in 0.7.0") :]
    unexpected, known = after.split("## Known failures of 0.7.0")
    assert "| 1 | `test_fft.py::test_shift` | `TypeError: 0.0 is not -0.0` |" in unexpected
    assert "| 1 | `test_signs.py::test_add` (`a\\|b`) | `TypeError: 0.0 is not -0.0` |" in known


def test_known_failures_have_their_reason(tmp_path: Path) -> None:
    """As the deviation says."""
    run = suite_run(tmp_path / "r", RELEASES[:2], {"a/t.py::test_x[1|2]": "pk"})
    text = render_conformance(make_suite_history(load_run(run.run), {}))
    assert (
        "| 1 | `t.py::test_x` (`1\\|2`) | signs of zeros are lost | "
        "[jax-ml/jax#1](https://github.com/jax-ml/jax/issues/1) |"
    ) in text
    assert "## Unexpected" not in text


def test_own_cases_have_a_section(tmp_path: Path) -> None:
    """Cases of our own are a column of their own, named as such."""
    known = SuiteResult(outcome=SuiteOutcome.KNOWN, reason="tracers have no device", issue="a/b#2")
    passed = SuiteResult(outcome=SuiteOutcome.PASSED)
    place = TrackedTest(
        group="own", doc="Where x is.", results={"0.5.3": passed, "0.6.2": known, "0.7.0": known}
    )
    text = told(tmp_path, place=place)
    assert "| fft | own (ours) |" in text
    after = text[text.index("## What the suite does not test") :]
    assert "- ▼ regressed: `own/place`: Where x is." in after
    assert "| `own/place` | Where x is. | tracers have no device |" in after


def test_a_history_without_releases() -> None:
    """A history without releases is a page all the same."""
    text = render_conformance(SuiteHistory(suite="signs"))
    assert "Nothing, from one release to the next." in text


def test_long_lists_are_folded() -> None:
    """Parametrisations of one test are told behind it, and long lists are folded."""
    names = [f"t/a.py::test_x[{n}]" for n in range(9)]
    assert join_tests([*names, "t/b.py::test_y"]) == (
        "`a.py::test_x` (`0`, `1`, `2`, `3` and 5 more), `b.py::test_y`"
    )
    assert fold_list("head", ["- a"]) == "**head**\n\n- a"
    assert fold_list("head", ["- a"] * 20).startswith("<details><summary>head</summary>")
