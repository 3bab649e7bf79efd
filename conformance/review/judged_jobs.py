"""The jobs of a run, judged by the current goldens; nothing is run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from shlex import quote
from typing import TYPE_CHECKING, Final

from conformance.cells.cell import is_cell_id, parse_cell
from conformance.engine.cache.blobs import CorruptBlobError
from conformance.engine.job import Job, PlannedCell
from conformance.engine.workers.transcript import list_judged_blobs
from conformance.golden.spans import is_release
from conformance.model.observation import is_case_error
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.traceback import FRAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from conformance.cells.releases import Releases
    from conformance.engine.record_judge import Judge
    from conformance.engine.runs.directory import RunDirectory
    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.model.run import RunCell

_ANY: Final = "0.dev0"
"""Placeholder release, which is not looked up in the table of releases."""
_PATH_FACTORS: Final = 3
"""Parts at the start of the id of a `path:` cell: `path`, a name, a hash."""
_VOLATILE: Final = frozenset({"stderr", "traceback", FRAMES})
"""Artifacts that hold paths and line numbers: an edit elsewhere changes them, and no decision."""
_DIGITS: Final = 12
NEVER: Final = frozenset(
    {Verdict.INFRA, Verdict.EXCLUDED, Verdict.FLAKY, Verdict.CRASHED, Verdict.TIMED_OUT}
)
AS_RECORDED: Final = frozenset({Verdict.MATCH, Verdict.DRIFTED, Verdict.KNOWN})
"""Verdicts of results that goldens and deviations already describe."""
CASE_IS_WRONG: Final = "the case itself is wrong; fix it and run it again"
_BUILT: Final = ("jax", "jaxlib")


@dataclass(frozen=True, kw_only=True, eq=False)
class JudgedJob:
    """A job of a run with its record."""

    job: Job
    record: Record

    @cached_property
    def key(self) -> tuple[str, str, str]:
        """Case, cell, and hash of the observation: a decision is about this and nothing else."""
        record = self.record
        error = record.error.signature if record.error is not None else ""
        # Sorted, so that the key does not depend on the order of artifacts.
        kept = sorted(pair for pair in record.artifacts.items() if pair[0] not in _VOLATILE)
        seen = hash_texts(str(record.outcome), error, *(part for pair in kept for part in pair))
        return record.case, record.cell, seen

    @property
    def release(self) -> str:
        """Version of jax in the cell of the job."""
        return self.job.planned.release

    @property
    def platform(self) -> str:
        """Platform of the cell of the job."""
        return self.job.planned.cell.platform

    @property
    def function(self) -> tuple[Path, str]:
        """File and name of the case, without the parametrisation."""
        return self.job.case.file, self.job.case.name

    @property
    def param(self) -> str:
        """Parametrisation of the case, empty for none."""
        return self.record.case.partition("[")[2].removesuffix("]")

    @property
    def refusal(self) -> str:
        """Reason why the job may not become golden, empty if it may."""
        return find_refusal(self.record, self.job.planned.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """The result of a run.

    Attributes:
        jobs: Jobs with their records, in the run's order.
        changed: Cases whose file changed since the run: none of their jobs is in `jobs`.
    """

    jobs: tuple[JudgedJob, ...]
    changed: tuple[Case, ...] = ()


def hash_texts(*parts: str) -> str:
    """Return a short hash of some texts."""
    # Messages may hold bytes that are not UTF-8, as surrogates.
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:_DIGITS]


def judge_run(
    directory: RunDirectory,
    cases: Iterable[Case],
    releases: Releases,
    judge: Judge,
    same: Mapping[str, str] | None = None,
) -> JudgedRun:
    """Return the records of a run with their jobs, judged against the current goldens.

    Cells are those that the run had, not those that a selector such as `nightly` selects today.

    Args:
        directory: The run.
        cases: The current cases; records of others are left out.
        releases: Known releases.
        judge: Judges records of the run.
        same: Hash of equivalent content, by hash of the case's content that was run.

    Returns:
        The jobs; a record whose blobs are gone is `infra`.

    Raises:
        CorruptRunError: If the directory cannot be read.
    """
    info = directory.read_run()
    records = {(record.case, record.cell): record for record in directory.read_records()}
    known = {case.id: case for case in cases}
    directory.blobs.fetch_missing(
        blob
        for (case_id, _), record in records.items()
        if case_id in known
        for blob in list_judged_blobs(record.artifacts)
    )
    cells = {cell.id: cell for cell in info.cells}
    planned: dict[str, PlannedCell] = {}
    jobs: list[JudgedJob] = []
    changed: dict[str, Case] = {}
    for key in info.plan or tuple(records):
        record, case = records.get(key), known.get(key[0])
        if record is None or case is None or key[1] not in cells:
            continue
        # An observation of other code must not become golden.
        if case.content_hash not in {record.case_hash, (same or {}).get(record.case_hash)}:
            changed[case.id] = case
            continue
        if key[1] not in planned:
            planned[key[1]] = _restore_cell(cells[key[1]], releases)
        job = Job(case=case, planned=planned[key[1]])
        jobs.append(JudgedJob(job=job, record=_rejudge(judge, job, record)))
    return JudgedRun(jobs=tuple(jobs), changed=tuple(changed.values()))


def _restore_cell(cell: RunCell, releases: Releases) -> PlannedCell:
    """Return the planned cell of a run, restored from `run.json` alone.

    Raises:
        UsageError: If the id of the cell is malformed.
    """
    if is_cell_id(cell.id):
        made = parse_cell(cell.id, releases)
    else:  # the interpreter of a `path:` cell need not be on this host
        factors = cell.id.split("-")[_PATH_FACTORS:]
        made = parse_cell("-".join([f"jax{_ANY}", *factors]), releases)
        # Its id has no release, which is that of the interpreter at the time of the run.
        made = replace(made, release=cell.release or made.release)
    return PlannedCell(
        cell=made,
        versions=cell.versions or {"jax": made.release},
        lock_hash=cell.lock,
        cell_hash=cell.hash,
    )


def _rejudge(judge: Judge, job: Job, record: Record) -> Record:
    try:
        return judge.rejudge(job, record)
    except CorruptBlobError as error:
        target = job.case.arguments or quote(job.case.id)
        reason = f"{error}; run it again: conformance run {target}"
        return replace(record, outcome=Outcome.INFRA, verdict=Verdict.INFRA, reasons=(reason,))


def find_refusal(record: Record, versions: Mapping[str, str]) -> str:
    """Return the reason why a record may not become golden, empty if it may.

    An error of the case is not a result of jax; an unreadable golden may be replaced.

    Args:
        record: A judged record.
        versions: Package versions of its cell.
    """
    if is_case_error(record.error):
        return CASE_IS_WRONG
    if built := find_unreleased(versions):
        return f"{built} is no release: what a nightly or a development build shows is never golden"
    # Before the verdict, which is `infra` for a golden that cannot be read.
    if record.golden_at_fault:
        return ""
    if record.verdict in NEVER:
        return f"what is {record.verdict} is never golden"
    if is_undeclared(record):
        return "it deviates from its reference, and no deviation declares that"
    return ""


def is_undeclared(record: Record) -> bool:
    """Say whether a record deviates from its reference without a declared deviation."""
    return record.verdict is Verdict.REGRESSED and record.conformance is Conformance.DEVIATES


def needs_no_golden(record: Record, versions: Mapping[str, str]) -> bool:
    """Say whether a record of an unreleased build agrees with its golden, and so needs none.

    Args:
        record: A judged record.
        versions: Package versions of its cell.
    """
    return record.verdict in AS_RECORDED and bool(find_unreleased(versions))


def find_unreleased(versions: Mapping[str, str]) -> str:
    """Return the unreleased package of a cell, empty if jax and jaxlib are releases.

    Args:
        versions: Package versions of the cell.
    """
    found = (f"{name} {versions[name]}" for name in _BUILT if not _is_released(versions.get(name)))
    return next(found, "")


def _is_released(version: str | None) -> bool:
    return version is None or is_release(version)
