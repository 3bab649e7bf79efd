"""Both ends, made fit to be mixed: one platform, one Python, packages from an index."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.cells.lock import current_host
from conformance.cells.provision import environment_folder, is_provisioned, provision
from conformance.cells.releases import PYTHONS
from conformance.cells.resolver import HOSTS, TPU_HOSTS, Resolver, explain_refusal
from conformance.cells.uvtool import NoSolutionError
from conformance.engine.preparation import plan_cell_with
from conformance.errors import InfrastructureError, UsageError
from conformance.triage.bisect.points import RESTART
from conformance.triage.blame.bytecode import lend_bytecode
from conformance.triage.blame.mixture import End, lock_of, mixed_cell
from conformance.triage.blame.wants import read_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.cells.releases import Releases
    from conformance.engine.job import PlannedCell
    from conformance.engine.preparation import Preparation

SAME: Final = ("platform", "devices", "x64", "config", "xla_flags")
"""What both ends must have in common, for it is no package."""
INSTALLERS: Final = frozenset({"pip", "setuptools", "uv", "wheel"})
"""Packages of an environment that only made it."""
_NO_CUT_OFF: Final = "2999-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """An environment that another one stands for.

    Attributes:
        planned: It.
        stand_in: What the other one is called.
        other: What is to blame if they do not show the same.
    """

    planned: PlannedCell
    stand_in: str
    other: str


def unified(before: Cell, after: Cell, releases: Releases) -> tuple[Cell, Cell]:
    """Return both cells on one Python.

    Args:
        before: The cell that is left.
        after: The one that is gone to.
        releases: Known releases.

    Raises:
        UsageError: If they differ in more than packages, or no Python goes with both.
    """
    for name in SAME:
        values = getattr(before, name), getattr(after, name)
        if values[0] != values[1]:
            raise UsageError(
                f"{before.id} and {after.id}: differ in {name.replace('_', ' ')}, too, "
                f"{values[0]} and {values[1]}; expected ends that differ in packages alone"
            )
    if before.python == after.python:
        return before, after
    for python in dict.fromkeys((after.python, before.python, *PYTHONS)):
        if all(_admits(cell, python, releases) for cell in (before, after)):
            return replace(before, python=python), replace(after, python=python)
    raise UsageError(
        f"{before.id} and {after.id}: no Python goes with both, so that it is part of what "
        "differs and no mixture of both can be made; name releases that are nearer to each other"
    )


def _admits(cell: Cell, python: str, releases: Releases) -> bool:
    if cell.interpreter is not None:
        return cell.python == python
    return releases.get(cell.release).admits(python)


def ends_of(
    cells: tuple[Cell, Cell],
    releases: Releases,
    prepare: Callable[[Iterable[Cell]], Preparation],
    *,
    locks: dict[str, Lock],
    cache: Path,
    wanted: tuple[str, ...] = (),
) -> tuple[tuple[End, End], tuple[Original | None, Original | None]]:
    """Return both ends, fit to be mixed.

    Args:
        cells: The cell that is left, and the one that is gone to.
        releases: Known releases.
        prepare: Looks up locks.
        locks: Gets the locks of what the ends stand for, by cell id.
        cache: Cache folder.
        wanted: Requirements that cells have beside their own packages, as they are prepared.

    Returns:
        The ends, and what each stands for, if it is not the cell itself.

    Raises:
        UsageError: If they differ in more than packages, or one cannot be had.
        InfrastructureError: If one cannot be had now.
    """
    same = unified(*cells, releases)
    before, after = (
        _end(pair, prepare, locks, cache, wanted) for pair in zip(cells, same, strict=True)
    )
    return (before[0], after[0]), (before[1], after[1])


def _end(
    pair: tuple[Cell, Cell],
    prepare: Callable[[Iterable[Cell]], Preparation],
    locks: dict[str, Lock],
    cache: Path,
    wanted: tuple[str, ...],
) -> tuple[End, Original | None]:
    """Return an end, and what it stands for, of a cell and the same on the Python of both ends."""
    cell, same = pair
    planned, lock = _planned(same, prepare)
    original = None
    if same.interpreter is not None:
        locks[same.id] = lock
        planned, lock, original = stand_in(planned, lock, cache, wanted)
    elif same != cell:
        asked, locks[cell.id] = _planned(cell, prepare)
        original = Original(
            planned=asked,
            stand_in=f"the same release on python {same.python}, with which both ends go,",
            other=f"python {cell.python} or {same.python} makes a difference, too",
        )
    return end_of(planned, lock, cache), original


def _planned(
    cell: Cell, prepare: Callable[[Iterable[Cell]], Preparation]
) -> tuple[PlannedCell, Lock]:
    found = prepare([cell])
    for left_out in found.exclusions:
        raise UsageError(f"{cell.id}: cannot be an end: {left_out.reason}")
    (planned,) = found.cells
    if planned.failure:
        raise InfrastructureError(f"{planned.failure}; {RESTART}")
    return _usable(planned), found.locks[cell.id]


def _usable(planned: PlannedCell) -> PlannedCell:
    if planned.missing:
        raise UsageError(f"{planned.cell.id}: cannot be an end: {planned.missing}")
    return planned


def end_of(planned: PlannedCell, lock: Lock, cache: Path) -> End:
    """Return an end, its environment made if it is not there.

    Args:
        planned: Its cell.
        lock: Its lock.
        cache: Cache folder.

    Raises:
        InfrastructureError: If the environment cannot be made.
    """
    try:
        environment = provision(planned.cell, lock=lock, cache=cache)
    except InfrastructureError as error:
        raise InfrastructureError(f"{error}; {RESTART}") from error
    return End(planned=planned, lock=lock, installed=read_installed(environment.python))


def provide(
    planned: PlannedCell,
    lock: Lock,
    *,
    ends: tuple[End, End],
    cache: Path,
    wanted: tuple[str, ...] = (),
) -> PlannedCell:
    """Make the environment of a mixture, if it is not there; both ends lend what they compiled.

    Args:
        planned: The mixture.
        lock: Its lock.
        ends: Both ends.
        cache: Cache folder.
        wanted: Requirements that it is to have beside; resolved with its own packages.

    Returns:
        The mixture, with what is wanted. One that this does not go with is not made.

    Raises:
        InfrastructureError: If it cannot be made.
    """
    planned = (
        plan_cell_with(planned.cell, lock, wanted, cache, planned.passed) if wanted else planned
    )
    if planned.missing or is_provisioned(planned.cell, lock, cache):
        return planned
    made = provision(planned.cell, lock=lock, cache=cache).python.parent.parent
    for end in ends:
        lend_bytecode(environment_folder(end.planned.cell, end.lock, cache), made)
    return planned


def stand_in(
    planned: PlannedCell, lock: Lock, cache: Path, wanted: tuple[str, ...]
) -> tuple[PlannedCell, Lock, Original]:
    """Return a cell that has the packages of an environment that must not be touched.

    Args:
        planned: The environment, a `path:` cell.
        lock: What is installed there.
        cache: Cache folder.
        wanted: Requirements that it is to have beside.

    Returns:
        The cell, its lock, and what it stands for.

    Raises:
        UsageError: If its packages cannot be had together from the index.
        InfrastructureError: If the index does not answer.
    """
    cell = planned.cell
    assert cell.interpreter is not None  # noqa: S101 - it is one
    local = read_installed(cell.interpreter).local
    left_out = {name for name, version in lock.pins.items() if "+" in version} | local
    pinned = {n: v for n, v in lock.pins.items() if n not in left_out | INSTALLERS}
    hosts = HOSTS | (TPU_HOSTS if cell.place.packages == "tpu" else {})
    resolver = Resolver(
        python=cell.python, cut_off=_NO_CUT_OFF, newer={}, left_out=(), hosts=hosts,
        nightly_index="", work=cache,
    )  # fmt: skip
    try:
        pins = resolver.resolve([f"{n}=={v}" for n, v in pinned.items()], current_host())
    except NoSolutionError as error:
        raise UsageError(
            f"{cell.id}: its packages cannot be installed elsewhere, to be mixed: "
            f"{explain_refusal(error)}"
        ) from error
    body = "".join(
        " \\\n    ".join((f"{n}=={pins[n].version}", *(f"--hash={h}" for h in pins[n].hashes)))
        + "\n"
        for n in sorted(pinned)
    )
    made = mixed_cell(planned, body)
    found = lock_of(made, body, (current_host(),))
    said = f"; it lacks {', '.join(sorted(left_out))}, of no index" if left_out else ""
    original = Original(
        planned=planned,
        stand_in=f"a new environment with the same versions{said},",
        other="what makes the difference is no version of a package",
    )
    standing = plan_cell_with(made, found, wanted, cache, planned.passed)
    return _usable(standing), found, original
