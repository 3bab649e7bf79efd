"""What came of a suite, in lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.engine.runs.loader import load_run
from conformance.engine.runs.root_causes import find_root_causes
from conformance.model.case import Case
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record
from conformance.model.run import Exclusion
from conformance.report.report import Report
from conformance.report.suites.results import (
    RunWarning,
    collect_warnings,
    read_collection_warnings,
    render_suite,
    render_warnings,
    shorten_file,
)
from tests.report.suite_runs import cells_of, suite_run

CELL = "jax0.6.0-py311-cpu8"
PASSED = Record(
    case="tests/test_a.py::test_0", cell=CELL, case_hash="", cell_hash="", outcome=Outcome.OK,
    stage=Stage.EXECUTE, conformance=Conformance.CONFORMS, verdict=Verdict.MATCH,
)  # fmt: skip
ERROR = ErrorInfo(type="KeyError", message="'x'", signature="KeyError: 'x'", where="test_a.py:3")


def failed(number: int, reason: str = "raised KeyError at execute: 'x'") -> Record:
    """Return a test that failed."""
    return replace(
        PASSED, case=f"tests/test_a.py::test_{number}", outcome=Outcome.RAISED, error=ERROR,
        conformance=Conformance.DEVIATES, verdict=Verdict.REGRESSED, reasons=(reason,),
    )  # fmt: skip


def lines(*records: Record, exclusions: tuple[Exclusion, ...] = (), every: bool = False) -> str:
    """Return what is told."""
    cases = {
        record.case: Case(
            id=record.case, family="tests", topic="test_a", name=record.case, kind="test",
            file=Path("tests/test_a.py"), line=1, arguments=f"'{record.case}' --with ./mine",
        )
        for record in records
    }  # fmt: skip
    return "\n".join(
        render_suite(records, find_root_causes(records), cases, exclusions, every=every)
    )


def test_counts_by_cell() -> None:
    """In the words of pytest."""
    skipped = replace(
        PASSED, case="tests/test_a.py::test_9", verdict=Verdict.EXCLUDED, reasons=("no need",)
    )
    other = replace(PASSED, cell="jax0.6.2-py311-cpu8")
    told = lines(PASSED, failed(1), skipped, other)
    assert f"{CELL}  1 passed, 1 failed, 1 skipped" in told
    assert "jax0.6.2-py311-cpu8  1 passed\n" in told
    assert f"skipped: tests/test_a.py::test_9 on {CELL}: no need" in told


def test_known_failures_and_xfails_have_different_words() -> None:
    """Those that a test declares itself, and those that are declared of it."""
    known = replace(failed(1), verdict=Verdict.KNOWN)
    marked = replace(known, case="tests/test_a.py::test_2", artifacts={"xfail": "0" * 8})
    assert f"{CELL}  1 xfailed, 1 known failures" in lines(known, marked)


def test_warnings_are_listed_with_tests_and_cells() -> None:
    """The first of them, each shown once."""
    warning = RunWarning(
        category="FutureWarning", message="x will go", where=("a.py",), tests=("t::a", "t::b"),
        cells=(CELL,), count=9, new_in=("0.6.0",),
    )  # fmt: skip
    told = list(render_suite([PASSED], (), {}, warnings=[warning] * 9))
    assert told.count("  new in 0.6.0: FutureWarning: x will go") == 5
    assert told[-1] == "  4 more in the report"
    assert "    2 tests, in 1 of 1 cell" in told
    every = list(render_suite([PASSED], (), {}, warnings=[warning] * 9, every=True))
    assert every.count("    2 tests, in 1 of 1 cell") == 9


def test_failures_by_cause() -> None:
    """One error is one cause, however many tests have it; one of them is run again as said."""
    told = lines(*(failed(number) for number in range(5)))
    assert f"failed: 5 tests on {CELL}" in told
    assert "test_2 and 2 more" in told
    assert "  at test_a.py:3" in told
    again = f"conformance suite run --cell {CELL} 'tests/test_a.py::test_0' --with ./mine"
    assert again in told
    assert "test_4" in lines(*(failed(number) for number in range(5)), every=True)


def test_skips_and_exclusions_are_listed() -> None:
    """Cells, with the reason; nothing acts on a terminal."""
    left_out = Exclusion(case="", cell="jax0.5.3-py311-cpu8", reason="does not go with mine")
    told = lines(failed(1, "raised \x1b[31m"), exclusions=(left_out,))
    assert "excluded all cases on jax0.5.3-py311-cpu8: does not go with mine" in told
    assert "\x1b" not in told


def test_tracebacks_follow_their_root_cause() -> None:
    """Before the command that runs the test again."""
    records = [failed(1), failed(2)]
    cases = {
        one.case: Case(
            id=one.case, family="tests", topic="t", name=one.case, kind="test",
            file=Path("tests/test_a.py"), line=1, arguments="again",
        )
        for one in records
    }  # fmt: skip
    found = [
        *render_suite(
            records, find_root_causes(records), cases,
            tracebacks=lambda members: [f"{len(members)} tracebacks"],
        )
    ]  # fmt: skip
    at = found.index("  2 tracebacks")
    assert found[at + 1].endswith(" again")


RELEASES = ("0.5.3", "0.6.2", "0.7.0")
TESTS = {"a/one": "ppp", "a/two": "ppp"}


def said(message: str, where: str = "/e/site-packages/jax/core.py:3", **more: Any) -> Any:
    """Return a warning as a test gives it."""
    return {"category": "DeprecationWarning", "message": message, "where": where} | more


def found(folder: Path, warnings: dict[tuple[str, str], list[Any]]) -> tuple[RunWarning, ...]:
    """Return the warnings of a run."""
    report = Report((load_run(suite_run(folder, RELEASES, TESTS, warnings=warnings).run),))
    return collect_warnings(report.jobs.values(), report.cells)


def test_equal_warnings_are_one(tmp_path: Path) -> None:
    """Numbers, addresses and places make no other warning."""
    (one,) = found(
        tmp_path,
        {
            ("a/one", "0.5.3"): [said("f at 0x7f00aa1 is 3 old", count=2)],
            ("a/two", "0.5.3"): [said("f at 0x7f00bb2 is 4 old")],
            ("a/one", "0.6.2"): [said("f at 0x7f00bb2 is 4 old", "/other/mine/a.py:9")],
        },
    )
    assert (one.category, one.count, one.tests) == ("DeprecationWarning", 4, ("a/one", "a/two"))
    assert list(one.cells) == cells_of(RELEASES[:2])
    assert one.where == ("jax/core.py", "mine/a.py")
    assert (one.new_in, one.gone_in) == ((), ("0.7.0",))


def test_warnings_new_in_the_newest_release_come_first(tmp_path: Path) -> None:
    """What is no longer given is last; a first release has nothing to be new against."""
    every = {("a/one", release): [said("often", category="UserWarning")] for release in RELEASES}
    every |= {("a/two", release): [said("always")] for release in RELEASES}
    every[("a/one", "0.5.3")] += [said("old")]
    every[("a/one", "0.6.2")] += [said("later")]
    every[("a/one", "0.7.0")] += [said("later"), said("newest")]
    warnings = found(tmp_path, every)
    assert [one.message for one in warnings] == ["newest", "later", "always", "often", "old"]
    assert [one.new_in for one in warnings[:3]] == [("0.7.0",), ("0.6.2",), ()]
    lines = "\n".join(render_warnings(warnings, 3, most=3))
    assert "new in 0.7.0: DeprecationWarning: newest" in lines
    assert "a/one, in 2 of 3 cells" in lines
    assert "2 more in the report" in lines
    assert list(render_warnings((), 3)) == []


def test_warnings_of_collection_have_no_test(tmp_path: Path) -> None:
    """It is told with what tests do, and of no test; what is none is passed over."""
    old, new = cells_of(RELEASES[:2])
    identities = {old: {"warnings": [{"no": 1}, 3]}, new: {"warnings": [said("jax.x is gone")]}}
    run = load_run(suite_run(tmp_path, RELEASES, TESTS, identities=identities).run)
    report = Report((run,))
    (one,) = collect_warnings(
        report.jobs.values(), report.cells, read_collection_warnings(report.runs)
    )
    assert (one.message, one.tests, one.cells) == ("jax.x is gone", (), (new,))
    assert "    as tests are collected, in 1 of 3 cells" in list(render_warnings([one], 3))


def test_unreadable_warnings_are_none(tmp_path: Path) -> None:
    """An artifact that is no list of warnings costs no report."""
    assert found(tmp_path, {("a/one", "0.5.3"): {"no": "list"}}) == ()  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("where", "file"),
    [
        ("/e/lib/python3.11/site-packages/jax/_src/core.py:12", "jax/_src/core.py"),
        ("/e/lib/python3.11/contextlib.py:12", "contextlib.py"),
        ("/home/x/mine/tests/test_a.py:3", "tests/test_a.py"),
        ("<string>:1", "<string>"),
    ],
)
def test_files_are_shortened_to_their_package(where: str, file: str) -> None:
    """As they are called wherever they lie."""
    assert shorten_file(where) == file
