"""The history of runs: additions to the database, and its content as JSON and as lines.

The database takes long to import, so modules that need it only with `--store` import this one late.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict as fields_of

from conformance.app.context import HISTORY_STORE, count_usable_cores
from conformance.app.output_files import print_note
from conformance.engine.runs.digests import DigestStore
from conformance.engine.runs.loader import find_runs
from conformance.errors import NothingSelectedError, UsageError
from conformance.report.text import flatten, format_moment, join_names
from conformance.store.database import parse_address
from conformance.store.nights import load_known_regressions, load_last_night
from conformance.store.run_insertion import StoreEntry, make_entry
from conformance.store.store import Store
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.engine.runs.digests import Digest, JobState
    from conformance.engine.runs.nights import Night
    from conformance.engine.runs.regression_tracker import Regression, RegressionEvent
    from conformance.store.retention import RemovedRuns
    from conformance.store.snapshot import CaseSpan, StoredRun


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedRuns:
    """The result of adding runs to a store.

    Attributes:
        numbers: Number of each run in the store by its id, None where the store had it before.
        problems: Runs that cannot be added, one sentence each.
    """

    numbers: Sequence[tuple[str, int | None]]
    problems: Sequence[str]


def open_store(context: ProjectContext, store: str | None) -> Store:
    """Return the store that `--store` names, by default that of the project.

    Args:
        context: The project.
        store: Path or URL.

    Raises:
        UsageError: If a URL is not understood.
    """
    return Store(parse_address(store or str(context.project.root / HISTORY_STORE)), print_note)


def add_runs(context: ProjectContext, store: str | None, folders: Sequence[Path]) -> AddedRuns:
    """Add runs that ended to a store.

    Args:
        context: The project.
        store: See `open_store`.
        folders: Run directories, and folders of them.

    Raises:
        NothingSelectedError: If no run can be added.
    """
    runs = [run for folder in folders for run in find_runs(folder)]
    # A run that cannot be read must not keep the others out of the store.
    digests, problems = DigestStore(context.cache / "digests", count_usable_cores()).get_all(runs)
    entries: list[StoreEntry] = []
    for directory, digest in digests.items():
        try:
            entries.append(make_entry(directory, digest))
        except UsageError as error:
            problems.append(str(error))
    # Status 3 only if no run can be added; otherwise problems are reported and the rest is stored.
    if not entries:
        raise NothingSelectedError("\n".join(problems))
    numbers = open_store(context, store).add(*entries)
    ids = [entry.digest.run for entry in entries]
    return AddedRuns(numbers=list(zip(ids, numbers, strict=True)), problems=problems)


def find_spans(store: Store, case: str) -> Mapping[str, Sequence[CaseSpan]]:
    """Return the results of a case in all runs of a store, by place.

    Args:
        store: The store.
        case: Id of the case.

    Raises:
        NothingSelectedError: If no run has the case.
    """
    spans = store.load_spans(case)
    if not spans:
        raise NothingSelectedError(
            f"no run that was added has case {case}; conformance list shows what there is"
        )
    return spans


KnownJobs = frozenset[tuple[str, str, str]]


def load_earlier_run(
    store: str, matrix: str, part: str, *, own: str, name: str
) -> tuple[Night | None, KnownJobs]:
    """Return the last run of a matrix in a store, and the jobs that issues are linked to.

    Args:
        store: Path or URL of the store; a missing file is not created.
        matrix: Name or file of the matrix.
        part: The selected part of the matrix.
        own: Id of the run that is compared, which is passed over.
        name: Id of the earlier run; empty for the last.

    Raises:
        ConformanceError: If the store cannot be read.
    """
    existing = _open_existing(store)
    if existing is None:
        return None, frozenset()
    return load_last_night(existing, matrix, part, own=own, name=name), load_known_regressions(
        existing
    )


def load_digests(store: str) -> list[Digest]:
    """Return the digests of the runs in a store.

    Args:
        store: Path or URL of the store; a missing file is not created.

    Raises:
        ConformanceError: If the store cannot be read.
    """
    existing = _open_existing(store)
    return [] if existing is None else existing.load_digests()


def _open_existing(text: str) -> Store | None:
    address = parse_address(text)
    # A command that only reads must not create a database.
    if address.file is not None and not address.file.exists():
        return None
    return Store(address, print_note)


def make_case_json(case: str, spans: Mapping[str, Sequence[CaseSpan]]) -> dict[str, Any]:
    """Return the results of a case, by place, as JSON has them.

    Args:
        case: Id of the case.
        spans: The results by place.
    """
    return {
        "case": case,
        "places": {
            place: [
                {
                    "first": span.first,
                    "last": span.last,
                    "runs": span.runs,
                    **_list_state_fields(span.state),
                }
                for span in found
            ]
            for place, found in spans.items()
        },
    }


def make_regressions_json(
    regressions: Sequence[Regression], events: Sequence[RegressionEvent]
) -> dict[str, Any]:
    """Return regressions, and the events of all of them, as JSON has them.

    Args:
        regressions: The regressions to show.
        events: The events.
    """
    rows = []
    for regression in regressions:
        fields = asdict(regression)
        # The key `standing` of the JSON is older than the name `status`, and scripts read it.
        renamed = {("standing" if name == "status" else name): fields[name] for name in fields}
        rows.append({**_list_state_fields(renamed.pop("state")), **renamed})
    return {"regressions": rows, "events": events}


def _list_state_fields(state: JobState | None) -> dict[str, Any]:
    """Return the fields of a state; the verdict of a job that did not run is null."""
    return {"verdict": None} if state is None else fields_of(state)


_LONGEST = 160
"""Characters of a reason in a line."""


def render_added_runs(added: AddedRuns) -> Iterator[str]:
    """Yield a line for each run that was added, or had been before.

    Args:
        added: The result of adding runs.
    """
    for run, number in added.numbers:
        yield f"{run}: {'already stored' if number is None else f'added as {number}'}"


def render_runs(runs: Sequence[StoredRun]) -> Iterator[str]:
    """Yield a line for each run, the oldest first.

    Args:
        runs: The runs.
    """
    for run in runs:
        counts = ", ".join(f"{number} {verdict}" for verdict, number in run.counts.items())
        cells = " ".join(filter(None, (run.matrix, run.part)))
        result = f"{run.unexpected} unexpected of {sum(run.counts.values())} ({counts})"
        yield f"{run.number:>4}  {format_moment(run.started)}  {run.name}  {cells}  {result}"
    if not runs:
        yield "no run was added yet; conformance history add reports/runs"


def render_case(spans: Mapping[str, Sequence[CaseSpan]]) -> Iterator[str]:
    """Yield the spans of a case by place.

    Args:
        spans: The results by place.
    """
    for place, found in spans.items():
        yield place
        for span in found:
            runs = f"{span.first}" if span.first == span.last else f"{span.first}..{span.last}"
            verdict = "did not run" if span.state is None else str(span.state.verdict)
            reason = "" if span.state is None else flatten(span.state.reason, _LONGEST)
            yield f"  {runs:>11}  {verdict}" + (f": {reason}" if reason else "")


def render_regressions(regressions: Sequence[Regression]) -> Iterator[str]:
    """Yield two lines for each regression: its status and verdict, and its places and reason.

    Args:
        regressions: The regressions.
    """
    for regression in regressions:
        # Numbers of runs in the store, not ids: they are short and in order.
        since = f"since run {regression.first}, last seen in {regression.last}"
        if regression.fixed_in is not None:
            since = f"{since}, fixed in {regression.fixed_in}"
        # A fixed regression has no open places; then all its places are shown.
        where = join_names(list(regression.open_places or regression.places))
        issue = f", {regression.issue}" if regression.issue else ""
        head = f"{regression.status:9}  {regression.id}  {regression.case}"
        yield f"{head}: {regression.state.verdict} {since}{issue}"
        yield f"           {where}: {flatten(regression.state.reason, _LONGEST)}"
    if not regressions:
        yield "nothing is open"


def render_removed_runs(pruned: RemovedRuns) -> str:
    """Return what pruning removed, in a line.

    Args:
        pruned: The counts.
    """
    return (
        f"removed {plural(pruned.runs, 'run')}, {plural(pruned.jobs, 'job')}, "
        f"{plural(pruned.changes, 'change')}"
    )
