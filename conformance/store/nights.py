"""The last night in a store: its jobs, and the regressions that are open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.runs.nights import Night, NightJob
from conformance.engine.runs.regression_tracker import RegressionStatus
from conformance.model.run_files import CauseSince, JobAt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.engine.runs.digests import JobState
    from conformance.engine.runs.regression_tracker import Regression
    from conformance.store.snapshot import StoredRun
    from conformance.store.store import Store


def load_last_night(
    store: Store, matrix: str, part: str, *, own: str = "", name: str = ""
) -> Night | None:
    """Return the newest run of a matrix that a store has.

    A store has the states of jobs, not their artifacts, which cannot be compared.

    Args:
        store: Store with the runs.
        matrix: Name or file of the matrix.
        part: The selected part of the matrix, empty for all of it.
        own: Id of a run to ignore.
        name: Id of the run, in place of the newest of the matrix.

    Returns:
        The night, None if the store has no such run.
    """
    runs = store.load_runs()
    found = [
        run
        for run in runs
        if run.name != own
        and (run.name == name if name else (run.matrix, run.part) == (matrix, part))
    ]
    if not found:
        return None
    last = found[-1]
    states = store.load_states(last.number)
    # The store also has regressions of other matrices.
    ongoing = [
        regression
        for regression in store.load_regressions()[0]
        if regression.is_open
        and any((regression.case, place) in states for place in regression.open_places)
    ]
    cause_by = {_make_symptom(regression): regression.id for regression in ongoing}
    return Night(
        run=last.name,
        started=last.started,
        jobs={
            JobAt(case=case, place=place): _make_job(case, state, cause_by)
            for (case, place), state in states.items()
        },
        causes={regression.id: _make_cause(regression, runs) for regression in ongoing},
    )


def load_known_regressions(store: Store) -> frozenset[tuple[str, str, str]]:
    """Return case, verdict and cause of each regression that has an issue."""
    found, _ = store.load_regressions()
    return frozenset(
        _make_symptom(regression)
        for regression in found
        if regression.status is RegressionStatus.KNOWN
    )


def _make_symptom(regression: Regression) -> tuple[str, str, str]:
    """Return case, verdict and cause: jobs of one case that fail alike have one regression."""
    return regression.case, str(regression.state.verdict), regression.state.cause


def _make_cause(regression: Regression, runs: Sequence[StoredRun]) -> CauseSince:
    shown = [run for run in runs if regression.first <= run.number <= regression.last]
    return CauseSince(
        id=regression.id,
        verdict=str(regression.state.verdict),
        reason=regression.state.reason,
        jobs=tuple(JobAt(case=regression.case, place=place) for place in regression.open_places),
        run=shown[0].name if shown else "",
        since=shown[0].started if shown else "",
        # At least 1: its runs may have been pruned.
        nights=max(1, len(shown)),
    )


def _make_job(case: str, state: JobState, causes: Mapping[tuple[str, str, str], str]) -> NightJob:
    shows = (str(state.verdict), state.cause) if state.unexpected else ()
    cause = causes.get((case, *shows), "") if state.unexpected else ""
    return NightJob(is_conclusive=state.is_conclusive, symptom=shows, cause=cause)
