"""A run beside the one before it: which that is, what changed, and for what the run fails."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click
import msgspec

from conformance.engine.evidence_file import read_evidence
from conformance.engine.nights import Night, compare, night_of
from conformance.engine.policy import NO_EVIDENCE, FailOn, exit_by
from conformance.engine.rundir import RUN, CorruptRunError, RunDirectory
from conformance.engine.since_file import read_since, write_since
from conformance.errors import ConformanceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from conformance.engine.policy import ExitDecision
    from conformance.model.evidence import Evidence
    from conformance.model.record import Record
    from conformance.model.run import RunInfo
    from conformance.model.since import Since

T = TypeVar("T")
NONE: Final = "none"
WHOLE: Final = "1/1"
STORE_NIGHTS: Final = "conformance.app.stored_nights"
_SAME: Final = ("select", "cell", "wanted")
"""What two runs of a matrix must have been asked for alike, to be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked about the run before.

    Attributes:
        since: Run to compare with, `none` for none; None for the last one of the same matrix.
        store: Store of runs; None for none.
        folder: Folder of the project's runs.
    """

    since: str | None
    store: str | None
    folder: Path

    def check(self) -> None:
        """See that the run that is named is there: before hours have passed.

        Raises:
            UsageError: If it is not.
        """
        if self.since is not None and self.since != NONE and self.named is None and not self.store:
            raise UsageError(
                f"--since {self.since}: no such run, expected its directory, the id of one in "
                f"{self.folder}, or {NONE}"
            )

    @property
    def named(self) -> RunDirectory | None:
        """The run that is named, by its directory or its id, if it is there."""
        if self.since is None:
            return None
        paths = (Path(self.since), self.folder / self.since)
        return next((RunDirectory(path) for path in paths if (path / RUN).is_file()), None)


def since_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that compare a run with the one before it.

    Args:
        command: The command.
    """
    since = click.option(
        "--since", metavar="RUN|none",
        help="Run to compare with: its directory or id.  [default: the last of the same matrix]",
    )  # fmt: skip
    store = click.option(
        "--store", metavar="PATH|URL", envvar="CONFORMANCE_STORE",
        help="Store of runs, as of `conformance history`: for the last run where its directory is "
        "gone, and for the issues that are linked.",
    )  # fmt: skip
    return since(store(command))


def fail_on_option(default: str | None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `--fail-on`.

    Args:
        default: Its default, None for what the parts of the run say.
    """
    return click.option(
        "--fail-on", type=click.Choice([str(one) for one in FailOn]), default=default,
        show_default=default or "as the parts were run",
        help="Exit with 1 for whatever is unexpected, only for what is new since the last run "
        "(with --store also for what has no linked issue), or never.",
    )  # fmt: skip


class Conclusion(NamedTuple):
    """What a run comes to, beside the night before.

    Attributes:
        since: What changed since that night, None where there is none to compare with.
        decision: The exit status, and why it is that one.
        not_compared: Why there is none to compare with; empty if there is, or nobody asked.
    """

    since: Since | None
    decision: ExitDecision
    not_compared: str = ""

    def told_by(self, info: RunInfo) -> RunInfo:
        """Return what is known of a run, with what it comes to.

        Args:
            info: What was known before.
        """
        return replace(
            info, exit=int(self.decision.code), exit_reason=self.decision.reason,
            not_compared=self.not_compared,
        )  # fmt: skip


def concluded(
    directory: RunDirectory, info: RunInfo, records: Sequence[Record], asked: Asked
) -> Conclusion:
    """Return what changed since the last night, which is written, and the exit status.

    What is wrong with the night before ends no run: it is said.

    Args:
        directory: The run.
        info: What is known of it.
        records: Its jobs.
        asked: What it is compared with.
    """
    policy = FailOn(info.request.get("fail_on", FailOn.UNEXPECTED))
    before = _before(directory, info, asked)
    since = None
    if before.night is not None:
        # Of the same causes, the last night's triage holds: what was one cause then is one now.
        after = night_of(directory.id, info, records, evidence=before.evidence)
        since = compare(before.night, after)
        write_since(directory, since)
    decision = exit_by(policy, records, since, before.known, before.evidence)
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


def _before(directory: RunDirectory, info: RunInfo, asked: Asked) -> _Before:
    whole = info.request.get("shard", WHOLE) == WHOLE
    wanted = asked.since != NONE and (whole or asked.since is not None)
    problems: list[str] = []
    night, known, evidence = None, None, NO_EVIDENCE
    if wanted:
        found = _tried(lambda: _from_directory(directory, info, asked), problems)
        night, evidence = found or (None, NO_EVIDENCE)
    if asked.store:
        stored = _tried(lambda: _from_store(directory, info, asked), problems)
        older, known = stored or (None, frozenset())
        night = night or (older if wanted else None)
    missing = ""
    if wanted and night is None and (info.matrix or asked.since is not None or asked.store):
        missing = "; ".join(problems) or _not_found(info)
    return _Before(night, known, evidence, missing)


def _not_found(info: RunInfo) -> str:
    """Return that no run can be compared with one, and what such a run must be like."""
    if not info.matrix:
        return "cells were named, and only runs of a matrix are compared; name a run with --since"
    return (
        f"no earlier finished run of matrix {info.matrix} with the same cases, --cell and --with "
        "was found; name a run with --since"
    )


def _tried(made: Callable[[], T], problems: list[str]) -> T | None:
    try:
        return made()
    except ConformanceError as error:
        _say(f"not compared: {error}")
        problems.append(str(error))
        return None


def _say(said: str) -> None:
    click.echo(f"conformance: {said}", err=True)


def _from_directory(
    directory: RunDirectory, info: RunInfo, asked: Asked
) -> tuple[Night, Mapping[str, Evidence]] | None:
    found = asked.named
    if asked.since is None:
        found = last_run(asked.folder, directory, info)
    if found is None:
        return None
    # Without them, root causes are as old as that run, and those of one culprit are several.
    since = _unless_corrupt(lambda: read_since(found))
    evidence = _unless_corrupt(lambda: read_evidence(found)) or NO_EVIDENCE
    return night_of(found.id, found.read_run(), found.read_records(), since, evidence), evidence


def _unless_corrupt(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except CorruptRunError as error:
        _say(str(error))
        return None


def _from_store(
    directory: RunDirectory, info: RunInfo, asked: Asked
) -> tuple[Night | None, frozenset[tuple[str, str, str]]]:
    module = importlib.import_module(STORE_NIGHTS)
    part = ", ".join((*info.request.get("select", ()), *info.request.get("cell", ())))
    found: tuple[Night | None, frozenset[tuple[str, str, str]]] = module.from_store(
        asked.store, info.matrix, part, _say, own=directory.id, name=asked.since or ""
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


def last_run(folder: Path, own: RunDirectory, info: RunInfo) -> RunDirectory | None:
    """Return the last finished run that was asked for the same as another one.

    Args:
        folder: Where runs are.
        own: The other one; if it is there too, those before it are meant.
        info: What is known of it.
    """
    wanted = _asked_for(info.matrix, {n: info.request.get(n, ()) for n in _SAME}, info.root)
    for directory in _before_it(folder, own):
        try:
            said = directory.read_run_as(_Info)
        except CorruptRunError:
            continue
        request = {name: getattr(said.request, name) for name in _SAME}
        if not said.finished or said.request.shard != WHOLE:
            continue
        if said.matrix and _asked_for(said.matrix, request, said.root) == wanted:
            return directory
    return None


def _before_it(folder: Path, own: RunDirectory) -> Iterator[RunDirectory]:
    """Yield the other runs of a folder, the newest first: their names sort by time."""
    here = own.path.resolve()
    for path in sorted((file.parent for file in folder.glob(f"*/{RUN}")), reverse=True):
        is_later = here.parent == folder.resolve() and path.name >= here.name
        if not is_later and path.resolve() != here:
            yield RunDirectory(path)


def _asked_for(matrix: str, request: dict[str, Any], root: str) -> list[tuple[str, ...]]:
    """Return what a run was asked for, paths as seen from the folder of its project."""
    named = [(matrix,), *(tuple(request[name]) for name in _SAME)]
    return [tuple(text.replace(f"{root}/", "") for text in texts) for texts in named]
