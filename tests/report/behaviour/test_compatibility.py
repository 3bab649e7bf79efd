"""What becomes of what another release made."""

from __future__ import annotations

from conformance.engine.runs.golden_history import LoadResult, ReleasePair
from conformance.report.behaviour.compatibility import render_pairs

PAIRS = {
    ReleasePair("0.9.0", "0.9.0"): LoadResult("right", promised=True),
    ReleasePair("0.9.0", "0.10.0"): LoadResult("load: ValueError: no", promised=True),
    ReleasePair("0.10.0", "0.9.0"): LoadResult("crashed SIGSEGV", promised=False),
    ReleasePair("0.10.0", "0.10.0"): LoadResult("wrong", promised=True),
    ReleasePair("0.8.0", "0.10.0"): LoadResult("load: ValueError: no", promised=False),
    ReleasePair("0.8.0", "0.9.0"): LoadResult("not exported", promised=False),
}


def test_rows_are_writers_and_columns_are_readers() -> None:
    """In order of release; a promise that is broken stands out, a refusal has a legend."""
    page = render_pairs("who reads what", {"sine": PAIRS}, "The newest are first.")
    assert "The newest are first." in page
    matrix = page.partition("## sine\n\n```text\n")[2].partition("\n```")[0]
    assert matrix.splitlines() == [
        "        0",
        "       0.",
        "       .1",
        "       90",
        "       ..",
        "       00",
        " 0.8.0  a",
        " 0.9.0 ·A",
        "0.10.0 †‼",
        "",
        "a  load: ValueError: no",
    ]


def test_the_share_of_correct_pairs_is_counted() -> None:
    """Within what is promised; beyond it, of older and of newer releases."""
    page = render_pairs("who reads what", {"sine": PAIRS})
    assert "| sine | 1 of 3 | 0 of 1 | 0 of 1 |" in page
