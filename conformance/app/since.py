"""The comparison of a run with an earlier run: its choice, the changes, the exit status."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from conformance.app.output_files import print_note
from conformance.engine.exit_policy import NO_EVIDENCE, FailOn, decide_exit
from conformance.engine.runs.directory import RUN, CorruptRunError, RunDirectory
from conformance.engine.runs.loader import LoadedRun, read_evidence
from conformance.engine.runs.nights import Night, compare_nights, make_night
from conformance.errors import ConformanceError, UsageError
from conformance.report.report import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.engine.exit_policy import ExitDecision
    from conformance.model.record import Record
    from conformance.model.run import RunInfo
    from conformance.model.run_files import Evidence, Since

T = TypeVar("T")
NONE: Final = "none"
WHOLE: Final = "1/1"
"""The shard of a run that is not split."""
HISTORY: Final = "conformance.app.history"
"""Imported only with `--store`: its database takes long to import."""
_SAME: Final = ("select", "cell", "wanted")
"""Fields of the request that must be equal in two runs of a matrix to compare them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinceOptions:
    """The options `--since` and `--store`.

    Attributes:
        since: Run to compare with, `none` for none; None for the last one of the same matrix.
        store: Store of runs; None for none.
        context: The project, whose runs are looked up.
    """

    since: str | None
    store: str | None
    context: ProjectContext

    def check(self) -> None:
        """Refuse a run that does not exist, before the new run takes its hours.

        Raises:
            UsageError: If `--since` names such a run.
        """
        # A store may have the run after its directory is gone; it is not opened before the run.
        if (
            self.since is not None
            and self.since != NONE
            and self.named_run is None
            and not self.store
        ):
            raise UsageError(
                f"--since {self.since}: no such run, expected its directory, the id of one in "
                f"{self.context.runs.folder}, or {NONE}"
            )

    @property
    def named_run(self) -> RunDirectory | None:
        """The run that `--since` names by its directory or id, None if it does not exist."""
        return None if self.since is None else self.context.runs.find(self.since)


class Conclusion(NamedTuple):
    """The result of a run, compared with the night before.

    Attributes:
        since: The changes since that night, None where there is no night to compare with.
        decision: The exit status with its reason.
        not_compared: Reason why there is no such night; empty if there is, or if no comparison was
            asked for.
    """

    since: Since | None
    decision: ExitDecision
    not_compared: str = ""

    def write(self, directory: RunDirectory, info: RunInfo, records: Sequence[Record]) -> Report:
        """Write the result into the directory of the run, and return the report on it.

        Args:
            directory: The run.
            info: Its description.
            records: Its records.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        info = replace(
            info, exit=int(self.decision.code), exit_reason=self.decision.reason,
            not_compared=self.not_compared,
        )  # fmt: skip
        directory.write_run(info)
        return Report((LoadedRun.of(directory, info, records),), since=self.since)


def conclude_run(
    directory: RunDirectory, info: RunInfo, records: Sequence[Record], options: SinceOptions
) -> Conclusion:
    """Compare a run with the night before, write the changes, and decide on the exit status.

    A night that cannot be read ends no run: a note reports it.

    Args:
        directory: The run.
        info: Its description.
        records: Its records.
        options: The run to compare with.
    """
    policy = FailOn(info.request.get("fail_on", FailOn.UNEXPECTED))
    earlier = _find_earlier_night(directory, info, options)
    since = None
    if earlier.night is not None:
        # Causes that triage merged in the last night are merged in this one as well.
        after = make_night(directory.id, info, records, evidence=earlier.evidence)
        since = compare_nights(earlier.night, after)
        directory.write_since(since)
    decision = decide_exit(policy, records, since, earlier.known, earlier.evidence)
    return Conclusion(since, decision, earlier.missing)


class _EarlierNight(NamedTuple):
    """The night before a run.

    Attributes:
        night: The night, None if there is none.
        known: Jobs that an issue is linked to, None without a store.
        evidence: Results of triage for the root causes of the night, by cause id.
        missing: Reason why there is no night, empty if there is one or none was requested.
    """

    night: Night | None = None
    known: Collection[tuple[str, str, str]] | None = None
    evidence: Mapping[str, Evidence] = NO_EVIDENCE
    missing: str = ""


def _find_earlier_night(
    directory: RunDirectory, info: RunInfo, options: SinceOptions
) -> _EarlierNight:
    # A shard is compared when it is merged: alone, most jobs of the last night would look removed.
    whole = info.request.get("shard", WHOLE) == WHOLE
    is_compared = options.since != NONE and (whole or options.since is not None)
    problems: list[str] = []
    night, known, evidence = None, None, NO_EVIDENCE
    if is_compared:
        loaded = _read_or_note(lambda: _load_from_directory(directory, info, options), problems)
        night, evidence = loaded or (None, NO_EVIDENCE)
    if options.store:
        stored = _read_or_note(lambda: _load_from_store(directory, info, options), problems)
        older, known = stored or (None, frozenset())
        # The directory wins: it has the artifacts, a store only the states of jobs.
        night = night or (older if is_compared else None)
    missing = ""
    # Without a matrix no comparison is expected, so nothing is reported as missing.
    if (
        is_compared
        and night is None
        and (info.matrix or options.since is not None or options.store)
    ):
        missing = "; ".join(problems) or _describe_missing(info)
    return _EarlierNight(night, known, evidence, missing)


def _describe_missing(info: RunInfo) -> str:
    """Return the message that no run can be compared with, and the properties it would need."""
    if not info.matrix:
        return "cells were named, and only runs of a matrix are compared; name a run with --since"
    return (
        f"no earlier finished run of matrix {info.matrix} with the same cases, --cell and --with "
        "was found; name a run with --since"
    )


def _read_or_note(read: Callable[[], T], problems: list[str]) -> T | None:
    """Return the result of a reader; None with a note if it raises."""
    try:
        return read()
    except ConformanceError as error:
        # A damaged night must not cost the results of this run, which took hours.
        print_note(f"not compared: {error}")
        problems.append(str(error))
        return None


def _load_from_directory(
    directory: RunDirectory, info: RunInfo, options: SinceOptions
) -> tuple[Night, Mapping[str, Evidence]] | None:
    earlier = options.named_run
    if options.since is None:
        earlier = find_last_run(options.context.runs.folder, directory, info)
    if earlier is None:
        return None
    # Both are optional: without them root causes are as old as that run, and are not merged.
    since = _read_unless_corrupt(earlier.read_since)
    evidence = _read_unless_corrupt(lambda: read_evidence(earlier)) or NO_EVIDENCE
    return make_night(
        earlier.id, earlier.read_run(), earlier.read_records(), since, evidence
    ), evidence


def _read_unless_corrupt(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except CorruptRunError as error:
        print_note(str(error))
        return None


def _load_from_store(
    directory: RunDirectory, info: RunInfo, options: SinceOptions
) -> tuple[Night | None, frozenset[tuple[str, str, str]]]:
    module = importlib.import_module(HISTORY)
    part = ", ".join((*info.request.get("select", ()), *info.request.get("cell", ())))
    found: tuple[Night | None, frozenset[tuple[str, str, str]]] = module.load_earlier_run(
        options.store, info.matrix, part, own=directory.id, name=options.since or ""
    )
    return found


class _Request(msgspec.Struct):
    select: tuple[str, ...] = ()
    cell: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    shard: str = WHOLE


class _RunSummary(msgspec.Struct):
    """The fields of `run.json` that decide whether a run is of the same matrix."""

    # A subset of `RunInfo`: the cells and cases of every earlier run need not be decoded.

    finished: str = ""
    root: str = ""
    matrix: str = ""
    request: _Request = msgspec.field(default_factory=_Request)


def find_last_run(folder: Path, own: RunDirectory, info: RunInfo) -> RunDirectory | None:
    """Return the last finished run with the same request as another run.

    Args:
        folder: Folder of runs.
        own: The other run; if it is in the folder, only earlier runs count.
        info: Description of the other run.
    """
    key = _make_key(info.matrix, {n: info.request.get(n, ()) for n in _SAME}, info.root)
    for directory in _list_earlier_runs(folder, own):
        try:
            summary = directory.read_run_as(_RunSummary)
        except CorruptRunError:
            continue
        request = {name: getattr(summary.request, name) for name in _SAME}
        # A shard or an interrupted run lacks jobs, which would look removed.
        if not summary.finished or summary.request.shard != WHOLE:
            continue
        if summary.matrix and _make_key(summary.matrix, request, summary.root) == key:
            return directory
    return None


def _list_earlier_runs(folder: Path, own: RunDirectory) -> Iterator[RunDirectory]:
    """Yield the other runs of a folder, the newest first: their names sort by time."""
    here = own.path.resolve()
    for path in sorted((file.parent for file in folder.glob(f"*/{RUN}")), reverse=True):
        # A run in another folder, e.g. a merged one, has no place in the order of names.
        is_later = here.parent == folder.resolve() and path.name >= here.name
        if not is_later and path.resolve() != here:
            yield RunDirectory(path)


def _make_key(matrix: str, request: dict[str, Any], root: str) -> list[tuple[str, ...]]:
    """Return the request of a run, with paths relative to the folder of its project."""
    # Two checkouts of one project, e.g. on two runners, have different absolute paths.
    named = [(matrix,), *(tuple(request[name]) for name in _SAME)]
    return [tuple(text.replace(f"{root}/", "") for text in texts) for texts in named]
