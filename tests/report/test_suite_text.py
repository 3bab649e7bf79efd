"""What came of a suite, in lines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conformance.model.case import Case
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record
from conformance.model.run import Exclusion
from conformance.report.suite_text import suite_lines

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
    return "\n".join(suite_lines(records, cases, exclusions, every=every))


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
