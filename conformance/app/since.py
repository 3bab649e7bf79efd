"""The comparison of a run with an earlier one: finding that run, the changes, the exit status."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from conformance.app.output_files import print_note
from conformance.engine.exit_policy import NO_EVIDENCE, FailOn, decide_exit
from conformance.engine.nights import Night, compare_nights, make_night
from conformance.engine.run_directory import RUN, CorruptRunError, RunDirectory
from conformance.engine.run_loader import LoadedRun, read_evidence
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
HISTORY: Final = "conformance.app.history"
"""Imported only with `--store`: its database takes long to import."""
_SAME: Final = ("select", "cell", "wanted")
"""What two runs of a matrix must have been asked for alike, to be compared."""


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
        """Refuse a run that does not exist, before hours have passed.

        Raises:
            UsageError: If `--since` names such a run.
        """
        if self.since is not None and self.since != NONE and self.named is None and not self.store:
            raise UsageError(
                f"--since {self.since}: no such run, expected its directory, the id of one in "
                f"{self.context.run_folder}, or {NONE}"
            )

    @property
    def named(self) -> RunDirectory | None:
        """The run that `--since` names by its directory or id, None if it does not exist."""
        return None if self.since is None else self.context.find_run(self.since)


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
    before = _find_before(directory, info, options)
    since = None
    if before.night is not None:
        # Of the same causes, the last night's triage holds: what was one cause then is one now.
        after = make_night(directory.id, info, records, evidence=before.evidence)
        since = compare_nights(before.night, after)
        directory.write_since(since)
    decision = decide_exit(policy, records, since, before.known, before.evidence)
    return Conclusion(since, decision, before.missing)


class _Before(NamedTuple):
    """The night before a run.

    Attributes:
        night: The night, None if there is none.
        known: Jobs that an issue is linked to, None where no store was named.
        evidence: What triage found out about the night's root causes.
        missing: Why there is no night, empty if there is or nobody asked for it.
    """

    night: Night | None = None
    known: Collection[tuple[str, str, str]] | None = None
    evidence: Mapping[str, Evidence] = NO_EVIDENCE
    missing: str = ""


def _find_before(directory: RunDirectory, info: RunInfo, options: SinceOptions) -> _Before:
    whole = info.request.get("shard", WHOLE) == WHOLE
    wanted = options.since != NONE and (whole or options.since is not None)
    problems: list[str] = []
    night, known, evidence = None, None, NO_EVIDENCE
    if wanted:
        found = _try(lambda: _load_from_directory(directory, info, options), problems)
        night, evidence = found or (None, NO_EVIDENCE)
    if options.store:
        stored = _try(lambda: _load_from_store(directory, info, options), problems)
        older, known = stored or (None, frozenset())
        night = night or (older if wanted else None)
    missing = ""
    if wanted and night is None and (info.matrix or options.since is not None or options.store):
        missing = "; ".join(problems) or _describe_missing(info)
    return _Before(night, known, evidence, missing)


def _describe_missing(info: RunInfo) -> str:
    """Return that no run can be compared with one, and what such a run must be like."""
    if not info.matrix:
        return "cells were named, and only runs of a matrix are compared; name a run with --since"
    return (
        f"no earlier finished run of matrix {info.matrix} with the same cases, --cell and --with "
        "was found; name a run with --since"
    )


def _try(read: Callable[[], T], problems: list[str]) -> T | None:
    """Return what is read, None with a note if it cannot be."""
    try:
        return read()
    except ConformanceError as error:
        print_note(f"not compared: {error}")
        problems.append(str(error))
        return None


def _load_from_directory(
    directory: RunDirectory, info: RunInfo, options: SinceOptions
) -> tuple[Night, Mapping[str, Evidence]] | None:
    found = options.named
    if options.since is None:
        found = find_last_run(options.context.run_folder, directory, info)
    if found is None:
        return None
    # Without them, root causes are as old as that run, and those of one culprit are several.
    since = _read_unless_corrupt(found.read_since)
    evidence = _read_unless_corrupt(lambda: read_evidence(found)) or NO_EVIDENCE
    return make_night(found.id, found.read_run(), found.read_records(), since, evidence), evidence


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


class _Info(msgspec.Struct):
    """What is read of a run to see whether it is of the same matrix."""

    finished: str = ""
    root: str = ""
    matrix: str = ""
    request: _Request = msgspec.field(default_factory=_Request)


def find_last_run(folder: Path, own: RunDirectory, info: RunInfo) -> RunDirectory | None:
    """Return the last finished run that was asked for the same as another one.

    Args:
        folder: Where runs are.
        own: The other one; if it is there too, those before it are meant.
        info: What is known of it.
    """
    wanted = _make_key(info.matrix, {n: info.request.get(n, ()) for n in _SAME}, info.root)
    for directory in _list_earlier_runs(folder, own):
        try:
            said = directory.read_run_as(_Info)
        except CorruptRunError:
            continue
        request = {name: getattr(said.request, name) for name in _SAME}
        if not said.finished or said.request.shard != WHOLE:
            continue
        if said.matrix and _make_key(said.matrix, request, said.root) == wanted:
            return directory
    return None


def _list_earlier_runs(folder: Path, own: RunDirectory) -> Iterator[RunDirectory]:
    """Yield the other runs of a folder, the newest first: their names sort by time."""
    here = own.path.resolve()
    for path in sorted((file.parent for file in folder.glob(f"*/{RUN}")), reverse=True):
        is_later = here.parent == folder.resolve() and path.name >= here.name
        if not is_later and path.resolve() != here:
            yield RunDirectory(path)


def _make_key(matrix: str, request: dict[str, Any], root: str) -> list[tuple[str, ...]]:
    """Return what a run was asked for, paths as seen from the folder of its project."""
    named = [(matrix,), *(tuple(request[name]) for name in _SAME)]
    return [tuple(text.replace(f"{root}/", "") for text in texts) for texts in named]
