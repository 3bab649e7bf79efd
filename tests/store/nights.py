"""Runs as stores take them, made of a few words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import numpy as np

from conformance.engine.runs.digests import Digest, JobState
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.store.run_insertion import StoreEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

A, B = "jax0.5.3-py311-cpu8", "jax0.6.2-py311-cpu8"
START: Final = datetime(2026, 5, 1, 3, tzinfo=UTC)


def state(verdict: Verdict = Verdict.MATCH, cause: str = "", **more: Conformance) -> JobState:
    """Return a state; its reason has numbers where its cause has none."""
    conformance = more.get("conformance", Conformance.CONFORMS)
    reason = f"{cause} 12" if cause else ""
    return JobState(verdict, Outcome.OK, conformance, reason, cause)


FINE = state()
BAD = state(Verdict.REGRESSED, "out[0] differs")
WORSE = state(Verdict.CRASHED, "SIGSEGV")
GONE = JobState(Verdict.INFRA, Outcome.INFRA, Conformance.UNKNOWN)


def night(
    number: int,
    jobs: Mapping[tuple[str, str], JobState],
    *,
    repeated: Iterable[tuple[str, str]] = (),
    started: datetime | None = None,
    releases: Mapping[str, str] | None = None,
) -> StoreEntry:
    """Return a run of some jobs, by case and cell, that began on some day of May."""
    cases = tuple(sorted({case for case, _ in jobs}))
    cells = tuple(sorted({cell for _, cell in jobs}))
    states = tuple(dict.fromkeys(jobs.values()))
    table = np.zeros((len(cases), len(cells)), "<u4")
    for (case, cell), shown in jobs.items():
        table[cases.index(case), cells.index(cell)] = states.index(shown) + 1
    began = started or START + timedelta(days=number)
    digest = Digest(
        run=f"night-{number}",
        started=began.isoformat(),
        finished=(began + timedelta(hours=1)).isoformat(),
        exit=0,
        matrix="nightly",
        cases=cases,
        cells=cells,
        releases=tuple((releases or {}).get(cell, cell[3:8]) for cell in cells),
        states=states,
        grid=table.tobytes(),
    )
    return StoreEntry(digest=digest, repeated=frozenset(repeated), host={"cpus": 2})


def shown(entry: StoreEntry) -> dict[tuple[str, str], JobState]:
    """Return the state of every job of a run, by case and cell."""
    return entry.digest.jobs


def one(verdict: JobState, case: str = "f/a", cell: str = A) -> dict[tuple[str, str], JobState]:
    """Return the one job of a run."""
    return {(case, cell): verdict}
