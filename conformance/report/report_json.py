"""A report as data: the document of `--json`, and JSON Lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - msgspec reads the annotations
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, TypedDict

import msgspec

from conformance.engine.exit_policy import FailOn, compute_exit_code
from conformance.engine.runs.transitions import TransitionKind  # noqa: TC001 - msgspec reads the annotations
from conformance.model.outcome import ExitCode
from conformance.model.record import Record
from conformance.model.run import Exclusion  # noqa: TC001 - msgspec reads the annotations
from conformance.model.run_files import Since  # noqa: TC001 - msgspec reads the annotations
from conformance.report.summary import count_understood, count_verdicts
from conformance.report.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.runs.stored_job import StoredJob
    from conformance.report.report import Report

_FIELDS: Final = tuple(field.name for field in fields(Record))


class TransitionJson(TypedDict):
    """A change between two releases, as JSON.

    Attributes:
        case: Case id.
        track: Place that the cells have in common, e.g. `cpu8` or `tpu:v5e:2x2`.
        kind: Kind of the change.
        changed: Names of the parts that differ: `ending`, `value`, `facts`, and IRs that do other
            work.
        before: Last release before the change; the cell's id if the release is unknown.
        after: First release after the change.
    """

    case: str
    track: str
    kind: TransitionKind
    changed: Sequence[str]
    before: str
    after: str


class JobJson(TypedDict):
    """The name of a job.

    Attributes:
        case: Case id.
        cell: Cell id.
    """

    case: str
    cell: str


class CellJson(TypedDict):
    """A cell, as JSON.

    Attributes:
        id: Cell id.
        identity: Identity that its worker reported; the versions of a cell that needed no worker.
        lock: Hash of its lock; of a `path:` cell, of the installed packages.
    """

    id: str
    identity: Mapping[str, Any]
    lock: str


class IrsJson(TypedDict):
    """Number of IRs.

    Attributes:
        seen: IRs that were analysed.
        understood: IRs of which every word was understood.
    """

    seen: int
    understood: int


class ReportJson(TypedDict):
    """The result of runs, as JSON.

    Attributes:
        run: Run id; of several runs, that of the newest.
        exit: Exit status.
        counts: Number of jobs by verdict.
        cells: The cells.
        results: The record of every job.
        exclusions: Jobs that were not run on purpose.
        irs: Number of IRs.
        runs: Ids of the runs, the oldest first; if several runs have a job, the newest counts.
        problems: Runs that could not be read and why, a sentence for each.
        not_run: Jobs that were planned and never ended.
        transitions: Changes between neighbouring releases.
        since: Changes since the last nightly run; null without an earlier run.
        exit_reason: Why the exit status is not 0, or is 0 although something is unexpected.
        not_compared: Why the run was not compared with an earlier run; empty if it was, or if no
            comparison was requested.
    """

    run: str
    exit: int
    counts: dict[str, int]
    cells: Sequence[CellJson]
    results: Sequence[Record]
    exclusions: Sequence[Exclusion]
    irs: IrsJson
    runs: Sequence[str]
    problems: Sequence[str]
    not_run: Sequence[JobJson]
    transitions: Sequence[TransitionJson]
    since: Since | None
    exit_reason: str
    not_compared: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLine(Record):
    """A line of JSON Lines: the record of a job, with the id of its run.

    Attributes:
        run: Run id.
    """

    run: str = ""


def make_report_json(report: Report) -> ReportJson:
    """Return a report as `--json` writes it.

    Args:
        report: The runs to report.
    """
    # Names of files need not be Unicode: a lone surrogate could not be encoded.
    runs = [sanitize(run.id) for run in report.runs]
    seen, whole = count_understood(report.records)
    return ReportJson(
        run=runs[-1] if runs else "",
        exit=int(find_exit_code(report)),
        counts=count_verdicts(report.records),
        cells=_make_cells(report),
        results=report.records,
        exclusions=report.exclusions,
        irs=IrsJson(seen=seen, understood=whole),
        runs=runs,
        problems=[sanitize(problem) for problem in report.problems],
        not_run=[JobJson(case=case, cell=cell) for case, cell in report.not_run],
        transitions=list(_make_transitions(report)),
        since=report.since,
        exit_reason=report.exit_reason,
        not_compared=report.not_compared,
    )


def _make_cells(report: Report) -> list[CellJson]:
    identities = {id_: one for run in report.runs for id_, one in run.info.identities.items()}
    return [
        # If all jobs of a cell come from the cache, no worker has reported an identity.
        CellJson(id=c.id, identity=identities.get(c.id, {"versions": c.versions}), lock=c.lock)
        for c in report.cells
    ]


def find_exit_code(report: Report) -> ExitCode:
    """Return the exit status of a report.

    Unexpected results decide first, unless the report has a single run that was started with a
    `--fail-on` that ignores them. Without unexpected results, a run that could not be read, or a
    job that never ended, is not a success either.

    Args:
        report: The runs to report.
    """
    code = compute_exit_code(report.records)
    if code is ExitCode.UNEXPECTED and len(report.runs) == 1:
        info = report.runs[0].info
        # The records of the run alone do not show which results `--fail-on new` accepted.
        lenient = info.request.get("fail_on", FailOn.UNEXPECTED) != FailOn.UNEXPECTED
        code = ExitCode(info.exit) if lenient and info.exit is not None else code
    if code in {ExitCode.OK, ExitCode.NOTHING}:
        if report.problems:
            return ExitCode.USAGE
        if report.not_run:
            return ExitCode.INFRA
    return code


def render_json_lines(report: Report) -> Iterator[bytes]:
    """Yield a line for each job, without its end: its record, and the id of its run.

    Args:
        report: The runs to report.
    """
    run_of = {(r.case, r.cell): run.id for run in report.runs for r in run.records}
    encoder = msgspec.json.Encoder()
    for job, side in report.jobs.items():
        values = {name: getattr(side.record, name) for name in _FIELDS}
        yield encoder.encode(RecordLine(run=sanitize(run_of[job]), **values))


def _make_transitions(report: Report) -> Iterator[TransitionJson]:
    release = {cell.id: cell.label for cell in report.cells}

    def name_cell(side: StoredJob) -> str:
        return release.get(side.record.cell, side.record.cell)

    for case, track, point in report.points():
        yield TransitionJson(
            case=case,
            track=track,
            kind=point.kind,
            changed=point.changed,
            before=name_cell(point.before),
            after=name_cell(point.after),
        )
