"""Runs made by hand: real directories with real artifacts, as a report reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.engine.ir_analysis import analyse_artifacts
from conformance.engine.runs.directory import Results, RunDirectory
from conformance.engine.runs.loader import load_run
from conformance.engine.runs.stored_job import StoredJob
from conformance.judge.errors import make_signature
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record
from conformance.model.run import RunCase, RunCell, RunInfo
from conformance.model.value import encode_value
from conformance.report.report import Report

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.engine.runs.loader import LoadedRun
    from conformance.model.value import Value

RELEASES = ("0.5.3", "0.6.2", "0.8.3")
CELLS = tuple(f"jax{release}-py311-cpu8" for release in RELEASES)
ADD = """\
HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %sum.7 = f32[4]{0} add(%x, %x)
}
"""
MULTIPLY = ADD.replace("%sum.7 = f32[4]{0} add", "%product.8 = f32[4]{0} multiply")
COPIED = ADD.replace("add(%x, %x)", "add(%x, %y)").replace(
    "  ROOT", "  %y = f32[4]{0} copy(%x)\n  ROOT"
)


class Directory:
    """A run directory in the making.

    Args:
        path: Where it is to be.
    """

    def __init__(self, path: Path) -> None:
        self.run = RunDirectory(path)
        self.records: list[Record] = []

    def job(
        self,
        case: str,
        cell: str,
        value: Value | None = None,
        *,
        texts: Mapping[str, str] | None = None,
        error: tuple[str, str] | None = None,
        **more: Any,
    ) -> Directory:
        """Add a job: one that gave a value or ended well, or one that raised `(type, message)`."""
        artifacts = {name: text.encode() for name, text in (texts or {}).items()}
        irs, facts = analyse_artifacts(artifacts)
        if value is not None:
            artifacts["value"] = encode_value(value)
        said: dict[str, Any] = {"outcome": Outcome.OK, "conformance": Conformance.CONFORMS}
        if error is not None:
            type_, message = error
            info = ErrorInfo(type=type_, message=message, signature=make_signature(type_, message))
            said = {"outcome": Outcome.RAISED, "conformance": Conformance.DEVIATES, "error": info}
        fields: dict[str, Any] = {
            "stage": Stage.EXECUTE, "case_hash": "", "cell_hash": "", "verdict": Verdict.MATCH,
            "seconds": {"trace": 0.25, "compile": 0.5, "job": 1.0}, "ir": irs, "facts": facts,
        }  # fmt: skip
        stored = {name: self.run.blobs.put(data) for name, data in artifacts.items()}
        fields |= {**said, "case": case, "cell": cell, "artifacts": stored, **more}
        self.records.append(Record(**fields))
        return self

    def written(self, **info: Any) -> RunDirectory:
        """Write the directory; `info` is what its `run.json` says beside cells, plan and cases."""
        cells = dict.fromkeys(record.cell for record in self.records)
        cases = dict.fromkeys(record.case for record in self.records)
        said = {
            "started": "2026-05-01T10:00:00+00:00", "finished": "2026-05-01T10:01:30+00:00",
            "exit": 0, "cells": tuple(map(cell_of, cells)),
            "plan": tuple((record.case, record.cell) for record in self.records),
            "cases": {case: RunCase(file="cases/f/t.py", line=3, doc="A case.") for case in cases},
        }  # fmt: skip
        self.run.write_run(RunInfo(**{**said, **info}))
        results = Results(self.run)
        for record in self.records:
            results.append(record, sync=False)
        results.close()
        return self.run

    def loaded(self, **info: Any) -> LoadedRun:
        """Write the directory and read it back."""
        return load_run(self.written(**info))

    def report(self, **info: Any) -> Report:
        """Write the directory and return the report on it."""
        return Report((self.loaded(**info),))


def cell_of(id_: str) -> RunCell:
    """Return a cell by its id, its jax that of the id."""
    release = id_.removeprefix("jax").partition("-")[0]
    return RunCell(id=id_, lock="l" * 64, versions={"jax": release, "numpy": "2.0.2"})


def sides(directory: Directory) -> list[StoredJob]:
    """Return the jobs of a directory, as they are compared."""
    return [StoredJob(record, directory.run.blobs) for record in directory.records]
