"""Directories of runs, written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.engine.runs.directory import Results, RunDirectory
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import Record
from conformance.model.run import RunCell, RunInfo

if TYPE_CHECKING:
    from pathlib import Path

A, B = "jax0.5.3-py311-cpu8", "path-env-0123abcd-py311-cpu8"
STARTED, FINISHED = "2026-05-01T10:00:00+00:00", "2026-05-01T10:01:30+00:00"


def record(case: str, cell: str, verdict: Verdict = Verdict.MATCH, **more: Any) -> Record:
    """Return a record with all that a digest leaves out."""
    fields = {
        "case_hash": "c" * 32, "cell_hash": "e" * 32, "outcome": Outcome.OK,
        "stage": Stage.EXECUTE, "conformance": Conformance.CONFORMS, "facts": {"dtypes": ["f32"]},
        "artifacts": {"value": "5" * 32}, "reasons": ("a reason",), **more,
    }  # fmt: skip
    return Record(case=case, cell=cell, verdict=verdict, **fields)


def write(path: Path, *records: Record, **info: Any) -> RunDirectory:
    """Write a run's directory."""
    run = RunDirectory(path)
    said = {
        "started": STARTED, "finished": FINISHED, "exit": 1, "matrix": "smoke",
        "cells": (RunCell(id=A, versions={"jax": "0.5.3"}), RunCell(id=B)),
        "plan": tuple((record.case, record.cell) for record in records), **info,
    }  # fmt: skip
    run.write_run(RunInfo(**said))
    results = Results(run)
    for made in records:
        results.append(made, sync=False)
    results.close()
    return run
