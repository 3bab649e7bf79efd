"""The options of `conformance shrink`, the cells that `--good-cell` means, and the result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.cells.selectors import cell_python
from conformance.errors import UsageError
from conformance.model.outcome import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.model.case import Deviation
    from conformance.triage.shrink.inquiry import Shrunk
    from conformance.triage.shrink.scripts import ShrunkScript

    Report = Callable[[], AbstractContextManager[Callable[[str], None]]]

NONE: Final = "none"
"""The value of `--good-cell` with which no other cell is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkOptions:
    """Options of `conformance shrink`.

    Attributes:
        cell: Selector of the cell in which the target fails.
        good_cell: Selector of a cell in which it is right, `none` for no other cell, None to
            look for one.
        fact: The fact to keep, empty for none.
        out: File for the smallest target.
        repro: File that runs on its own, None for none.
        wanted: Requirements in addition to the packages of the cells.
        probes: How many candidates may be tried.
        seconds: How long that may take.
        jobs: How many candidates are tried at the same time.
    """

    cell: str
    good_cell: str | None
    fact: str
    out: Path
    repro: Path | None
    wanted: tuple[str, ...]
    probes: int
    seconds: float
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShrinkResult:
    """A target that was cut down.

    Attributes:
        shrunk: The target.
        lines: The report on it.
        data: The report as JSON.
    """

    shrunk: Shrunk | ShrunkScript
    lines: tuple[str, ...]
    data: Mapping[str, Any]

    @property
    def exit_code(self) -> ExitCode:
        """The exit status of the command."""
        if self.shrunk.interrupted:
            return ExitCode.INTERRUPTED
        return ExitCode.OK if self.shrunk.confirmed else ExitCode.UNEXPECTED


def find_good_cells(
    context: ProjectContext, cell: Cell, good: str | None, deviations: Iterable[Deviation] = ()
) -> tuple[tuple[Cell, ...], bool]:
    """Return cells in which a target may be right, the likeliest first, and whether it is named.

    Args:
        context: The project.
        cell: The cell in which it fails.
        good: The value of `--good-cell`.
        deviations: The declared deviations of the target.

    Raises:
        UsageError: If it names the same cell, or several.
    """
    if good == NONE:
        return (), False
    if good is not None:
        named = context.cell(good)
        if named == cell:
            raise UsageError(f"--good-cell {good}: the same cell twice, expected two")
        return (named,), True
    declared = tuple(deviations)
    found = [
        replace(cell, release=release, python=cell_python(release, context.releases))
        for release in context.releases.nearest_to(cell.release)
        if not any(one.covers(release, cell.platform, {"jax": release}) for one in declared)
    ]
    return tuple(found), False
