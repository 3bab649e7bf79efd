"""Judged records, made up."""

from __future__ import annotations

from typing import Any

from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import Record


def record(case: str, cell: str, verdict: Verdict, *reasons: str, **more: Any) -> Record:
    """Return a judged record that conforms."""
    return Record(
        case=case, cell=cell, case_hash="", cell_hash="", outcome=Outcome.OK, stage=Stage.EXECUTE,
        conformance=Conformance.CONFORMS, verdict=verdict, reasons=reasons, **more,
    )  # fmt: skip
