"""A run beside the one before it: which that is, what changed, and for what the run fails."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from conformance.engine.nights import Night, compare, night_of
from conformance.engine.policy import FailOn, exit_by
from conformance.engine.rundir import RUN, CorruptRunError, RunDirectory
from conformance.engine.since_file import read_since, write_since
from conformance.errors import ConformanceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.model.outcome import ExitCode
    from conformance.model.record import Record
    from conformance.model.run import RunInfo
    from conformance.model.since import Since

NONE: Final = "none"
WHOLE: Final = "1/1"
STORE_NIGHTS: Final = "conformance.cli.store_nights"
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


def concluded(
    directory: RunDirectory, info: RunInfo, records: Sequence[Record], asked: Asked
) -> tuple[Since | None, ExitCode]:
    """Return what changed since the last night, which is written, and the exit status.

    What is wrong with the night before ends no run: it is said.

    Args:
        directory: The run.
        info: What is known of it.
        records: Its jobs.
        asked: What it is compared with.
    """
    policy = FailOn(info.request.get("fail_on", FailOn.UNEXPECTED))
    before, known = _before(directory, info, asked)
    since = None
    if before is not None:
        since = compare(before, night_of(directory.id, info, records))
        write_since(directory, since)
    return since, exit_by(policy, records, since, known)


def _before(
    directory: RunDirectory, info: RunInfo, asked: Asked
) -> tuple[Night | None, frozenset[tuple[str, str, str]] | None]:
    """Return the night before, and what issues are linked to; None where none can be."""
    whole = info.request.get("shard", WHOLE) == WHOLE
    wanted = asked.since != NONE and (whole or asked.since is not None)
    night, known = None, None
    if wanted:
        night = _tried(lambda: _from_directory(directory, info, asked))
    if asked.store:
        stored, known = _tried(lambda: _from_store(directory, info, asked)) or (None, frozenset())
        night = night or (stored if wanted else None)
    return night, known


def _tried(made: Callable[[], Any]) -> Any:
    try:
        return made()
    except ConformanceError as error:
        _say(f"not compared: {error}")
        return None


def _say(said: str) -> None:
    click.echo(f"conformance: {said}", err=True)


def _from_directory(directory: RunDirectory, info: RunInfo, asked: Asked) -> Night | None:
    found = asked.named
    if asked.since is None:
        found = last_run(asked.folder, directory, info)
    if found is None:
        return None
    try:
        since = read_since(found)
    except CorruptRunError as error:  # then root causes are as old as that run
        _say(str(error))
        since = None
    return night_of(found.id, found.read_run(), found.read_records(), since)


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
