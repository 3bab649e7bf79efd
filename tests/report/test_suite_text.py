"""What came of a suite, in lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conformance.engine.root_causes import find_root_causes
from conformance.model.case import Case
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record
from conformance.model.run import Exclusion
from conformance.report.suite_text import render_suite
from conformance.report.suite_warnings import RunWarning

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


def test_known_failures_are_told_apart() -> None:
    """Those that a test declares itself, and those that are declared of it."""
    known = replace(failed(1), verdict=Verdict.KNOWN)
    marked = replace(known, case="tests/test_a.py::test_2", artifacts={"xfail": "0" * 8})
    assert f"{CELL}  1 xfailed, 1 known failures" in lines(known, marked)


def test_warnings() -> None:
    """The first of them, each told once."""
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


def test_what_is_left_out() -> None:
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
