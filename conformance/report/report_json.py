"""A report as data: what `--json` writes, and JSON Lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence  # noqa: TC003 - msgspec reads the annotations
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, TypedDict

import msgspec

from conformance.engine.exit_policy import FailOn, compute_exit_code
from conformance.engine.transitions import TransitionKind  # noqa: TC001 - msgspec reads the annotations
from conformance.model.outcome import ExitCode
from conformance.model.record import Record
from conformance.model.run import Exclusion  # noqa: TC001 - msgspec reads the annotations
from conformance.model.run_files import Since  # noqa: TC001 - msgspec reads the annotations
from conformance.report.summary import count_understood, count_verdicts
from conformance.report.text import sanitize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.stored_job import StoredJob
    from conformance.report.report import Report

_FIELDS: Final = tuple(field.name for field in fields(Record))


class TransitionJson(TypedDict):
    """A change between two releases, as JSON.

    Attributes:
        case: Case id.
        track: What the cells have in common, e.g. `cpu8` or `tpu:v5e:2x2`.
        kind: Kind of the change.
        changed: What differs: `ending`, `value`, `facts`, and IRs that do other work, by name.
        before: The newest release that shows the old; the cell's id where it is not known.
        after: The oldest release that shows the new.
    """

    case: str
    track: str
    kind: TransitionKind
    changed: Sequence[str]
    before: str
    after: str


class JobJson(TypedDict):
    """A job by its name.

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
        identity: What its worker said it is; of one that needed no worker, its versions.
        lock: Hash of its lock; of a `path:` cell, of what is installed there.
    """

    id: str
    identity: Mapping[str, Any]
    lock: str


class IrsJson(TypedDict):
    """How many IRs there are.

    Attributes:
        seen: IRs that were looked at.
        understood: Those of them that were understood to the last word.
    """

    seen: int
    understood: int


class ReportJson(TypedDict):
    """The result of runs, as JSON.

    Attributes:
        run: Run id; of several, the newest.
        exit: Exit status.
        counts: How many jobs have each verdict.
        cells: The cells.
        results: The record of every job.
        exclusions: What was not run on purpose.
        irs: How many IRs there are.
        runs: Ids of the runs, the oldest first; of a job that several hold, the last one's counts.
        problems: What is wrong with runs that could not be read, a sentence each.
        not_run: Jobs that were planned and never ended.
        transitions: What changes between neighbouring releases.
        since: What changed since the last night; null where there is none to compare with.
        exit_reason: Why the exit status is not 0, or is 0 although something is unexpected.
        not_compared: Why there is no earlier run to compare with; empty if there is, or if that
            was not asked for.
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
    """A line of JSON Lines: the record of a job, and the run it is of.

    Attributes:
        run: Run id.
    """

    run: str = ""


def make_report_json(report: Report) -> ReportJson:
    """Return a report as `--json` writes it.

    Ids of runs and problems name files, which need not be Unicode: they are made so.

    Args:
        report: The runs to report.
    """
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
    said = {id_: identity for run in report.runs for id_, identity in run.info.identities.items()}
    return [
        CellJson(id=c.id, identity=said.get(c.id, {"versions": c.versions}), lock=c.lock)
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
        said = {name: getattr(side.record, name) for name in _FIELDS}
        yield encoder.encode(RecordLine(run=sanitize(run_of[job]), **said))


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
