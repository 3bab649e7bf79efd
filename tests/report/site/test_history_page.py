"""The history's page, and what a case's page shows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from hypothesis import given
from hypothesis import strategies as st

from conformance.model.outcome import Outcome, Verdict
from conformance.report.history import NOTHING, make_history
from conformance.report.report import Report
from conformance.report.site.addresses import HISTORY, case_page, run_page
from conformance.report.site.case_page import render_case_pages
from conformance.report.site.history_page import (
    FIXED,
    SEGMENTS,
    TICKS,
    collect_families,
    make_case_history,
    make_date_row,
    make_date_ticks,
    render_history_pages,
)
from tests.builders import f32
from tests.report.nights import FINE, A, B, night, nights, state
from tests.report.runs import CELLS, Directory
from tests.report.site.pages import Page

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.cache.differences import CachedDiff, IrPair
    from conformance.engine.runs.digests import Digest

BAD = state(Verdict.REGRESSED, "out 3 of 8 elements differ")
GOOD = state(FINE)
YEAR = make_history(
    night(0, {("f/a", A): FINE}, run=f"{n:03d}", started=f"2025-{n // 28 + 1:02d}-{n % 28 + 1:02d}")
    for n in range(336)
).runs


def page(runs: list[Digest], report: Report | None = None) -> Page:
    """Return the page of some runs."""
    ((path, content),) = render_history_pages(make_history(runs), report or Report(()))
    assert path == HISTORY
    return Page(content)


def test_open_regressions_come_first() -> None:
    """With since when, on which cells, and what was fixed below."""
    runs = [
        night(0, {("f/a", A): BAD, ("f/b", A): FINE}),
        night(1, {("f/a", A): FINE, ("f/b", A): FINE}),
        night(2, {("f/a", A): FINE, ("f/b", A): BAD, ("f/b", B): BAD}),
    ]
    found = page(runs)
    assert not found.unclosed
    assert "3 runs from 2026-05-01 to 2026-05-03; 1 regression open, 1 fixed." in found.text
    still, ended = (one.id for one in make_history(runs).regressions)
    assert found.ids.index(f"r-{still}") < found.ids.index("fixed") < found.ids.index(f"r-{ended}")
    assert f"#r-{still}" in found.links
    assert "2 cells, jax 0.5.3, 0.6.2" in found.text
    assert "feed.xml" in found.links


def test_an_open_regression_whose_jobs_no_longer_run_is_marked() -> None:
    """It is open as far as is known."""
    assert "not run since" in page(nights(BAD, None)).text
    assert "not run since" not in page(nights(BAD, BAD)).text
    assert "came back 1 time" in page(nights(BAD, FINE, BAD)).text


def test_many_that_are_fixed_are_counted() -> None:
    """Those fixed last are shown."""
    cases = [f"f/{n}" for n in range(FIXED + 5)]
    runs = [night(n, {(case, A): one for case in cases}) for n, one in enumerate((BAD, GOOD))]
    found = page(runs)
    assert f"{FIXED + 5} fixed" in found.text
    assert "5 more, fixed earlier." in found.text
    assert sum(name.startswith("r-") for name in found.ids) == FIXED


def test_nothing_unexpected_and_no_runs_at_all() -> None:
    """Both are told."""
    assert "Nothing unexpected is open." in page(nights(FINE, FINE)).text
    assert "No run is recorded." in page([]).text


def test_a_run_that_did_not_end_is_marked() -> None:
    """It counts with what it has."""
    killed = night(0, {("f/a", A): BAD}, finished="", exit=None)
    assert "it did not end" in page([killed]).text


def test_links_lead_to_pages_that_are_there(tmp_path: Path) -> None:
    """Cases and runs of the report have pages; others are named."""
    report = Directory(tmp_path / "run-01").job("f/a", CELLS[0], f32(1)).report()
    runs = [night(n, {("f/a", A): BAD, ("f/gone", A): BAD}) for n in range(2)]
    found = page(runs, report)
    local = {unquote(link) for link in found.links if link.endswith(".html")}
    assert {case_page("f/a"), run_page("run-01")} <= local
    assert case_page("f/gone") not in local
    assert run_page("run-00") not in local
    assert "f/gone" in found.text


def test_a_family_shows_the_worst_of_its_jobs() -> None:
    """Its cases are rows where they changed, one line by verdict where they did not."""
    runs = [
        night(n, {("f/a", A): one, ("f/a", B): FINE, ("f/b", A): FINE, ("f/c", A): Verdict.KNOWN})
        for n, one in enumerate((GOOD, BAD, GOOD))
    ]
    (family,) = collect_families(make_history(runs))
    assert [(s.state, s.length) for s in family.row.spans] == [
        ("known", 1), ("regressed", 1), ("known", 1),
    ]  # fmt: skip
    (row,) = family.rows
    assert row.name == "f/a"
    assert [(s.state, s.label) for s in row.spans][1] == ("regressed", "regressed, 2026-05-02")
    assert [(same.verdict, same.names) for same in family.constant] == [
        (Verdict.MATCH, ("f/b",)), (Verdict.KNOWN, ("f/c",)),
    ]  # fmt: skip


@given(st.lists(st.integers(0, NOTHING), min_size=1, max_size=336))
def test_a_row_is_as_long_as_the_runs_and_never_too_fine(ranks: list[int]) -> None:
    """What flickers is drawn by several runs at a time; the worst is always seen."""
    row = make_date_row("f/a", ranks, YEAR[: len(ranks)])
    assert sum(span.length for span in row.spans) == len(ranks)
    assert len(row.spans) <= SEGMENTS
    shown = {span.state for span in row.spans}
    assert history_state(min(ranks)) in shown
    assert row.coarse == 1 or len(ranks) > SEGMENTS


def history_state(rank: int) -> str:
    """Return what a span of a rank shows."""
    (span,) = make_date_row("f/a", [rank], YEAR[:1]).spans
    return span.state


def test_dates_are_few_and_as_wide_as_their_runs() -> None:
    """Months over a year, days over a week."""
    year = make_date_ticks(YEAR)
    assert len(year) == TICKS
    assert (year[0].label, year[0].length) == ("2025-01", 28)
    assert [tick.label for tick in make_date_ticks(YEAR[:2])] == ["2025-01-01", "2025-01-02"]
    assert sum(tick.length for tick in make_date_ticks(YEAR[:50])) == 50
    assert make_date_ticks(()) == ()


def test_a_case_shows_the_cells_that_changed_and_names_the_others() -> None:
    """One line for those that showed the same throughout."""
    runs = [night(n, {("f/a", A): one, ("f/a", B): FINE}) for n, one in enumerate((GOOD, BAD))]
    found = make_case_history(make_history(runs), "f/a")
    assert found is not None
    assert [row.name for row in found["rows"]] == [A]
    assert [(same.verdict, same.names) for same in found["constant"]] == [(Verdict.MATCH, (B,))]
    assert (found["runs"], found["first"], found["last"]) == (2, "2026-05-01", "2026-05-02")


def test_one_run_is_no_history() -> None:
    """Nor is a case that no run holds."""
    made = make_history(nights(FINE, None, None))
    assert make_case_history(made, "f/a") is None
    assert make_case_history(made, "f/none") is None


def test_the_page_of_a_case_shows_its_history(tmp_path: Path) -> None:
    """Below its tracks."""

    def differ(pair: IrPair) -> CachedDiff:
        raise AssertionError(pair)

    report = Directory(tmp_path / "run-01").job("f/a", CELLS[0], f32(1)).report()
    made = make_history(nights(FINE, BAD))
    ((_, content),) = render_case_pages(report, differ, {"f/a": make_case_history(made, "f/a")})
    found = Page(content)
    assert not found.unclosed
    assert "2 runs from 2026-05-01 to 2026-05-02." in found.text
    assert A in found.text


def test_hostile_text_is_shown_as_text() -> None:
    """In names of cases, cells and runs, in reasons, dates and matrices."""
    evil = "<script>alert(1)</script>\x00\u202e\"'"
    said = state(Verdict.REGRESSED, evil + "x" * 1_000_000)
    infra = state(Verdict.INFRA, outcome=Outcome.INFRA)
    more = {"run": evil, "matrix": evil, "started": evil}
    runs = [
        night(0, {(f"{evil}/a", evil): said}, **more),
        night(1, {(f"{evil}/a", evil): infra}, run=f"{evil}2"),
    ]
    ((_, content),) = render_history_pages(make_history(runs), Report(()))
    assert b"<script>alert" not in content
    assert b"\x00" not in content
    assert "\u202e" not in content.decode()
    found = Page(content)
    assert not found.unclosed
    assert "<script>alert(1)</script>␀<U+202E>" in found.text
    assert len(content) < 100_000
