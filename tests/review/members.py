"""Jobs with what came of them, made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from conformance.cells.cell import Cell
from conformance.engine.job import Job, PlannedCell
from conformance.model.case import Case, Deviation
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record
from conformance.review.judged_jobs import JudgedJob

KNOWN = ("0.4.30", "0.5.0", "0.5.3", "0.6.0", "0.6.2", "0.7.0")


def member(
    case: str = "fam/case",
    release: str = "0.6.0",
    verdict: Verdict = Verdict.REGRESSED,
    *reasons: str,
    error: str = "",
    platform: str = "cpu",
    deviations: tuple[Deviation, ...] = (),
    conforms: Conformance = Conformance.CONFORMS,
    outcome: Outcome | None = None,
    **more: Any,
) -> JudgedJob:
    """Return a job of a case in a cell of a release, and its record.

    Args:
        case: Case id.
        release: Version of jax.
        verdict: What the judge said.
        reasons: Why.
        error: Type and message of what was raised, `TypeError: text`; empty for none.
        platform: Platform of the cell.
        deviations: What the case declares.
        conforms: Whether it conforms.
        outcome: How it ended; by default as `error` says.
        more: What else is kept of the record.
    """
    name, _, _ = case.partition("[")
    type_, _, message = error.partition(": ")
    made = Case(
        id=case, family=name.partition("/")[0], topic="topic", name=name.partition("/")[2],
        kind="program", file=Path("cases/fam/topic.py"), line=1, deviations=deviations,
    )  # fmt: skip
    cell = Cell(release=release, python="3.11", platform=platform)
    planned = PlannedCell(
        cell=cell, versions={"jax": release, "jaxlib": release}, lock_hash="", cell_hash=""
    )
    record = Record(
        case=case, cell=cell.id, case_hash="", cell_hash="",
        outcome=outcome or (Outcome.RAISED if error else Outcome.OK), stage=Stage.EXECUTE,
        error=ErrorInfo(type=type_, message=message, signature=error) if error else None,
        conformance=conforms, verdict=verdict, reasons=reasons, **more,
    )  # fmt: skip
    return JudgedJob(job=Job(case=made, planned=planned), record=record)
