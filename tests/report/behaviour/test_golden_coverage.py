"""The page that says what goldens and deviations have."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.engine.job import Job
from conformance.engine.plan import Plan
from conformance.engine.runs.transitions import TransitionKind
from conformance.report.behaviour.golden_coverage import (
    Recorded,
    RecordedState,
    classify_step,
    render_state,
)
from tests.builders import case, deviation
from tests.engine.worlds import planned

RELEASES = ("0.5.3", "0.6.2", "0.8.3")


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (("a", False), ("a", False), TransitionKind.SAME),
        (("a", False), ("b", False), TransitionKind.CHANGED),
        (("a", True), ("b", True), TransitionKind.CHANGED),
        (("a", False), ("b", True), TransitionKind.REGRESSED),
        (("a", True), ("b", False), TransitionKind.FIXED),
        (("a", True), ("a", False), TransitionKind.FIXED),
    ],
)
def test_changes_between_releases_are_classified(
    before: tuple[str, bool], after: tuple[str, bool], kind: TransitionKind
) -> None:
    """Deviations say what is wrong; without them another ending is just another."""
    one, other = (Recorded(ending=end, deviates=wrong) for end, wrong in (before, after))
    assert classify_step(one, other) is kind


def made(endings: dict[str, str], *cases_: str) -> str:
    """Return the page of cases that deviate below 0.6, with the endings of each release."""
    cells = tuple(planned(release) for release in RELEASES)
    told = [case(name, doc="A story.\n\nMore.", deviations=(deviation(),)) for name in cases_]
    jobs = tuple(Job(case=one, planned=cell) for one in told for cell in cells)
    recorded = {
        j.id: Recorded.of(j, endings[j.planned.release])
        for j in jobs
        if j.planned.release in endings
    }
    plan = Plan(jobs=jobs, exclusions=(), cells=cells)
    dates = {"0.8.3": "2025-12-18"}
    return render_state(RecordedState(plan=plan, recorded=recorded, dates=dates, root=Path()))


def test_a_row_for_each_release_the_newest_first() -> None:
    """How many conform, of how many; and what the release changed."""
    page = made({"0.5.3": "error-1", "0.6.2": "value-1", "0.8.3": "value-2"}, "family/name")
    rows = [line for line in page.splitlines() if line.startswith("| 0")]
    assert rows == [
        "| 0.8.3 | 2025-12-18 | 1 of 1 | 1 changed |",
        "| 0.6.2 |  | 1 of 1 | 1 fixed |",
        "| 0.5.3 |  | 0 of 1 |  |",
    ]


def test_families_have_a_table_of_their_own() -> None:
    """A row each, with the last release of each line."""
    page = made({"0.5.3": "error-1", "0.6.2": "value-1"}, "loops/one", "sums/one", "sums/two")
    table = page.partition("<summary>By family</summary>\n\n")[2].partition("\n\n</details>")[0]
    assert table.splitlines() == [
        "| family | 0.5.3 | 0.6.2 | 0.8.3 |",
        "| --- | --- | --- | --- |",
        "| loops | 0 of 1 | 1 of 1 | - |",
        "| sums | 0 of 2 | 2 of 2 | - |",
    ]


def test_changed_cases_are_named_with_their_docstring() -> None:
    """Parametrisations of one function stand in one line."""
    page = made({"0.5.3": "error-1", "0.6.2": "value-1"}, "family/name[a]", "family/name[b]")
    line = "- fixed: [`family/name`](../cases/family/topic.py) (`a`, `b`): A story."
    assert line in page.splitlines()
    assert "<details><summary>0.6.2: 2 fixed</summary>" in page


def test_jobs_without_a_golden_are_not_counted() -> None:
    """A release that nobody ran has no numbers; its neighbours are compared."""
    page = made({"0.5.3": "value-1", "0.8.3": "value-1"}, "family/name")
    assert "| 0.6.2 |  | - |  |" in page
    assert "| 0.8.3 | 2025-12-18 | 1 of 1 | 1 fixed |" in page
