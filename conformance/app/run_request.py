"""The request of a run: which cases in which cells, as `run.json` keeps it for `--resume`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from conformance.cells.cell import PATH_PREFIX
from conformance.cells.requirements import make_absolute
from conformance.engine.exit_policy import FailOn
from conformance.engine.runs.directory import REMEDY, RUN, CorruptRunError

if TYPE_CHECKING:
    from conformance.app.context import ProjectContext
    from conformance.engine.runs.directory import RunDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The options of a run that decide on its jobs and its exit status.

    Attributes:
        select: Families, case ids, globs or paths of cases.
        also: Folders of more cases, which may be missing or empty.
        everything: Whether every case is meant although SELECT names none.
        matrix: Name or file of a matrix, None for the default.
        cell: Selectors of cells.
        shard: `I/N`, the part of the run.
        require_platform: Whether a missing accelerator is an error.
        wanted: Requirements in addition to the cells' own packages.
        fail_on: The policy of the exit status, a `FailOn`.
        night: Day of the last nightly that counts, empty for all.
        nights: Ids of the nightly cells that the run began with.
    """

    # Stored in `run.json`: a new field needs a default, and a renamed one loses its stored value.
    select: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    everything: bool = False
    matrix: str | None = None
    cell: tuple[str, ...] = ()
    shard: str = "1/1"
    require_platform: bool = False
    wanted: tuple[str, ...] = ()
    fail_on: str = FailOn.UNEXPECTED
    night: str = ""
    nights: tuple[str, ...] = ()

    def make_absolute(self, context: ProjectContext) -> RunRequest:
        """Return a request that means the same in any working directory.

        Args:
            context: The project, in the working directory that the request was made in.
        """
        matrix = self.matrix
        # A name of a matrix stays a name: it is looked up in the folders of the project.
        if matrix is not None and (matrix.endswith(".toml") or len(Path(matrix).parts) > 1):
            matrix = str(Path(matrix).absolute())
        cell = tuple(
            f"{PATH_PREFIX}{Path(text.removeprefix(PATH_PREFIX)).expanduser().absolute()}"
            if text.startswith(PATH_PREFIX)
            else text
            for text in self.cell
        )
        return replace(
            self, select=context.make_absolute(self.select), matrix=matrix, cell=cell,
            also=tuple(str(Path(folder).expanduser().absolute()) for folder in self.also),
            wanted=tuple(map(make_absolute, self.wanted)),
        )  # fmt: skip

    def render_arguments(self, night: str) -> str:
        """Return the arguments of `conformance run` for the same cases and cells, for a shell.

        Args:
            night: Day of the last nightly that counts, empty for all.
        """
        # --all and SELECT exclude each other. --shard is left out: each runner adds its own.
        words = [*(["--all"] if self.everything else self.select)]
        words += ["--matrix", self.matrix] if self.matrix else []
        for option, values in (
            ("--also", self.also),
            ("--cell", self.cell),
            ("--with", self.wanted),
        ):
            words += chain.from_iterable((option, value) for value in values)
        # The day is resolved by the planner, so that all runners mean the same nightly.
        words += ["--night", night] if night else []
        return shlex.join(words)


def load_request(directory: RunDirectory) -> RunRequest:
    """Return the request of a run.

    Args:
        directory: The run.

    Raises:
        CorruptRunError: If `run.json` has none.
    """
    stored = directory.read_run().request
    if not stored:
        raise CorruptRunError(f"{directory.path / RUN}: does not say what was asked for; {REMEDY}")
    try:
        # Validated: the file may come from another machine, or be edited.
        return msgspec.convert(stored, RunRequest)
    except msgspec.ValidationError as error:
        raise CorruptRunError(
            f"{directory.path / RUN}: request: {str(error).lower()}; {REMEDY}"
        ) from None
