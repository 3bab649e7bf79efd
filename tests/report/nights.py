"""Digests of runs made by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from conformance.engine.runs.digests import Digest, JobState
from conformance.judge.errors import normalise_cause
from conformance.model.outcome import Conformance, Outcome, Verdict, is_unexpected

if TYPE_CHECKING:
    from collections.abc import Mapping

A, B = "jax0.5.3-py311-cpu8", "jax0.6.2-py311-cpu8"
FINE = Verdict.MATCH


def state(verdict: Verdict, reason: str = "", **more: Any) -> JobState:
    """Return what is known of a job that ran to its end."""
    conformance = more.pop("conformance", Conformance.CONFORMS)
    told = reason if is_unexpected(verdict, conformance) else ""
    fields = {"outcome": Outcome.OK, "reason": told, "cause": normalise_cause(told), **more}
    return JobState(verdict=verdict, conformance=conformance, **fields)


def night(number: int, jobs: Mapping[tuple[str, str], JobState | Verdict], **more: Any) -> Digest:
    """Return the digest of the run of a night, counted from the first of May 2026."""
    said = {key: made if isinstance(made, JobState) else state(made) for key, made in jobs.items()}
    cases = sorted({case for case, _ in said})
    cells = sorted({cell for _, cell in said})
    states = list(dict.fromkeys(said.values()))
    grid = np.zeros((len(cases), len(cells)), "<u4")
    for (case, cell), made in said.items():
        grid[cases.index(case), cells.index(cell)] = states.index(made) + 1
    day = f"2026-05-{number + 1:02d}"
    fields = {
        "run": f"run-{number:02d}", "started": f"{day}T03:00:00+00:00",
        "finished": f"{day}T04:00:00+00:00", "exit": 0, "matrix": "smoke", **more,
    }  # fmt: skip
    return Digest(
        cases=tuple(cases), cells=tuple(cells), states=tuple(states), grid=grid.tobytes(),
        releases=tuple(cell.removeprefix("jax").partition("-")[0] for cell in cells), **fields,
    )  # fmt: skip


def nights(*verdicts: JobState | Verdict | None, case: str = "f/a", cell: str = A) -> list[Digest]:
    """Return a run a night of one job; None where it did not run, but another did."""
    return [
        night(number, {("f/other", cell): FINE} if v is None else {(case, cell): v})
        for number, v in enumerate(verdicts)
    ]
