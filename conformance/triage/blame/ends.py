"""Ends of a blame that can be mixed: one platform, one Python, packages from an index."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.requirements import Requirement

from conformance.cells.lock import Lock, get_host
from conformance.cells.overlay import find_overlay_lock
from conformance.cells.provision import get_environment_folder, is_provisioned, provision
from conformance.cells.releases import PYTHONS
from conformance.cells.resolver import HOSTS, TPU_HOSTS, Resolver, explain_refusal
from conformance.cells.uvtool import NoSolutionError
from conformance.engine.workers.preparation import plan_cell_with
from conformance.errors import InfrastructureError, UsageError
from conformance.search.axes import RESTART
from conformance.triage.blame.installed import read_installed
from conformance.triage.blame.mixtures import BlameEnd, Original, make_lock, make_mixed_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from conformance.cells.cell import Cell
    from conformance.cells.overlay import OverlayLock
    from conformance.cells.releases import Releases
    from conformance.engine.job import PlannedCell
    from conformance.engine.workers.preparation import Preparation

SAME: Final = ("platform", "devices", "x64", "config", "xla_flags")
"""Attributes that both ends must have in common, since they are no packages."""
INSTALLERS: Final = frozenset({"pip", "setuptools", "uv", "wheel"})
"""Packages that only installed an environment, and are no part of its behaviour."""
_NO_CUT_OFF: Final = "2999-01-01T00:00:00Z"
_CACHE = "__pycache__"


def unify_pythons(before: Cell, after: Cell, releases: Releases) -> tuple[Cell, Cell]:
    """Return both cells on one Python.

    Args:
        before: The old cell.
        after: The new one.
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
    # The newer end's Python first: users are about to use it.
    for python in dict.fromkeys((after.python, before.python, *PYTHONS)):
        if all(_admits_python(cell, python, releases) for cell in (before, after)):
            return replace(before, python=python), replace(after, python=python)
    raise UsageError(
        f"{before.id} and {after.id}: no Python goes with both, so that it is part of what "
        "differs and no mixture of both can be made; name releases that are nearer to each other"
    )


def _admits_python(cell: Cell, python: str, releases: Releases) -> bool:
    if cell.interpreter is not None:
        return cell.python == python
    return releases.get(cell.release).admits(python)


def make_ends(
    cells: tuple[Cell, Cell],
    releases: Releases,
    prepare: Callable[[Iterable[Cell]], Preparation],
    *,
    locks: dict[str, Lock],
    cache: Path,
    wanted: tuple[str, ...] = (),
) -> tuple[BlameEnd, BlameEnd]:
    """Return both ends, on one Python and with packages of an index, so that they can be mixed.

    Args:
        cells: The old and the new cell.
        releases: Known releases.
        prepare: Looks up locks.
        locks: Receives the locks of the environments that the ends replace, by cell id.
        cache: Cache folder.
        wanted: Requirements of the cells in addition to their own packages.

    Raises:
        UsageError: If they differ in more than packages, or an end cannot be installed.
        InfrastructureError: If an end cannot be installed now.
    """

    def end(cell: Cell, same: Cell) -> BlameEnd:
        planned, lock = _plan_end(same, prepare)
        original = None
        if same.interpreter is not None:
            locks[same.id] = lock
            planned, lock, original = make_stand_in(planned, same.interpreter, lock, cache, wanted)
        elif same != cell:
            own, locks[cell.id] = _plan_end(cell, prepare)
            original = Original(
                planned=own,
                stand_in=f"the same release on python {same.python}, with which both ends go,",
                other=f"python {cell.python} or {same.python} makes a difference, too",
            )
        return make_end(planned, lock, cache, original)

    before, after = map(end, cells, unify_pythons(*cells, releases))
    return before, after


def _plan_end(
    cell: Cell, prepare: Callable[[Iterable[Cell]], Preparation]
) -> tuple[PlannedCell, Lock]:
    found = prepare([cell])
    for left_out in found.exclusions:
        raise UsageError(f"{cell.id}: cannot be an end: {left_out.reason}")
    (planned,) = found.cells
    if planned.failure:
        raise InfrastructureError(f"{planned.failure}; {RESTART}")
    return _check_usable(planned), found.locks[cell.id]


def _check_usable(planned: PlannedCell) -> PlannedCell:
    if planned.missing:
        raise UsageError(f"{planned.cell.id}: cannot be an end: {planned.missing}")
    return planned


def make_end(
    planned: PlannedCell, lock: Lock, cache: Path, original: Original | None = None
) -> BlameEnd:
    """Return an end, with its environment created if it is missing.

    Args:
        planned: The cell.
        lock: Lock of the cell.
        cache: Cache folder.
        original: The environment that it replaces.

    Raises:
        InfrastructureError: If the environment cannot be made.
    """
    try:
        environment = provision(planned.cell, lock=lock, cache=cache)
    except InfrastructureError as error:
        raise InfrastructureError(f"{error}; {RESTART}") from error
    installed = read_installed(environment.python)
    return BlameEnd(planned=planned, lock=lock, installed=installed, original=original)


def provide_mixture(
    planned: PlannedCell,
    lock: Lock,
    *,
    ends: tuple[BlameEnd, BlameEnd],
    cache: Path,
    wanted: tuple[str, ...] = (),
) -> PlannedCell:
    """Create the environment of a mixture if it is missing, with the bytecode of both ends.

    Args:
        planned: The mixture.
        lock: Lock of the mixture.
        ends: Both ends.
        cache: Cache folder.
        wanted: Requirements in addition, resolved with its own packages.

    Returns:
        The mixture, planned with the requirements. If its packages exclude them, no environment is
        created, and `missing` of the plan has the reason.

    Raises:
        InfrastructureError: If the environment cannot be created.
    """
    planned = (
        plan_cell_with(planned.cell, lock, wanted, cache, planned.passed) if wanted else planned
    )
    # A mixture of an earlier search is used again.
    if planned.missing or is_provisioned(planned.cell, lock, cache):
        return planned
    made = provision(planned.cell, lock=lock, cache=cache).python.parent.parent
    for end in ends:
        lend_bytecode(get_environment_folder(end.planned.cell, end.lock, cache), made)
    return planned


def make_stand_in(
    planned: PlannedCell, interpreter: Path, lock: Lock, cache: Path, wanted: tuple[str, ...]
) -> tuple[PlannedCell, Lock, Original]:
    """Return a cell with the packages of an environment that must not be modified.

    Args:
        planned: The environment, a `path:` cell.
        interpreter: Python of the environment.
        lock: Packages that are installed in the environment.
        cache: Cache folder.
        wanted: Requirements in addition.

    Returns:
        The cell, its lock, and the environment that it replaces.

    Raises:
        UsageError: If its packages cannot be had together from the index.
        InfrastructureError: If the index does not answer.
    """
    cell = planned.cell
    local = read_installed(interpreter).local
    # A local version, e.g. 0.6.0+cuda, and a package from a folder are on no index.
    left_out = {name for name, version in lock.pins.items() if "+" in version} | local
    pinned = {n: v for n, v in lock.pins.items() if n not in left_out | INSTALLERS}
    hosts = HOSTS | (TPU_HOSTS if cell.place.packages == "tpu" else {})
    # Without a cut-off date: the environment may hold packages newer than any release of jax.
    resolver = Resolver(
        python=cell.python, cut_off=_NO_CUT_OFF, newer={}, excluded=(), hosts=hosts,
        nightly_index="", work=cache,
    )  # fmt: skip
    try:
        pins = resolver.resolve([f"{n}=={v}" for n, v in pinned.items()], get_host())
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
    made = make_mixed_cell(planned, body)
    found = make_lock(made, body, (get_host(),))
    remark = f"; it lacks {', '.join(sorted(left_out))}, of no index" if left_out else ""
    original = Original(
        planned=planned,
        stand_in=f"a new environment with the same versions{remark},",
        other="what makes the difference is no version of a package",
    )
    stand_in = plan_cell_with(made, found, wanted, cache, planned.passed)
    return _check_usable(stand_in), found, original


def add_requirements(
    ends: tuple[BlameEnd, BlameEnd], wanted: tuple[str, ...], *, locks: dict[str, Lock], cache: Path
) -> tuple[tuple[BlameEnd, BlameEnd], tuple[str, ...]]:
    """Add the packages of requirements to both ends, if their versions differ between the ends.

    Then each package is a candidate of the search like the packages of the cells.

    Args:
        ends: Both ends.
        wanted: Requirements in addition to the packages of the cells.
        locks: Receives the locks of changed originals, by cell id.
        cache: Cache folder.

    Returns:
        The ends, and the requirements that are left for every mixture: wheels and folders of the
        user, which have one version. Both as given if each package resolves to one version at both
        ends, or if an end is an environment that must not be modified.

    Raises:
        NoSolutionError: If the requirements and an end exclude each other.
        InfrastructureError: If an environment cannot be made, or the index does not answer.
    """
    originals = [end.original for end in ends if end.original is not None]
    if not wanted or any(env.planned.cell.interpreter for env in originals):
        return ends, wanted
    layers = [_lock_overlay(end.planned, end.lock, wanted, cache) for end in ends]
    if layers[0].versions == layers[1].versions:
        return ends, wanted
    # Wheels and folders of the user have one version, so they cannot be part of a mixture.
    left = tuple(text for text in wanted if Requirement(text).url)

    def extend(planned: PlannedCell, lock: Lock, layer: OverlayLock) -> tuple[PlannedCell, Lock]:
        added = Lock(text=layer.split_local(cache)[0], path=lock.path)
        entries: Mapping[str, str] = {**lock.entries, **added.entries}
        body = "".join(entries[name] for name in sorted(entries))
        cell = make_mixed_cell(planned, body)
        both = make_lock(
            cell, body, (get_host(),), nightlies=lock.nightlies, index=lock.nightly_index
        )
        return plan_cell_with(cell, both, left, cache, planned.passed), both

    def extend_end(end: BlameEnd, layer: OverlayLock) -> BlameEnd:
        planned, lock = extend(end.planned, end.lock, layer)
        original = end.original
        if original is not None:
            own = locks[original.planned.cell.id]
            its_layer = _lock_overlay(original.planned, own, wanted, cache)
            cell, own = extend(original.planned, own, its_layer)
            locks[cell.cell.id] = own
            original = replace(original, planned=cell)
        return make_end(planned, lock, cache, original)

    before, after = map(extend_end, ends, layers)
    return (before, after), left


def _lock_overlay(
    planned: PlannedCell, lock: Lock, wanted: tuple[str, ...], cache: Path
) -> OverlayLock:
    python = provision(planned.cell, lock=lock, cache=cache).python
    return find_overlay_lock(python, lock, wanted, cache)


def lend_bytecode(lender: Path, borrower: Path) -> None:
    """Link compiled modules of an environment into another, if their source is the same file.

    Python replaces a compiled module instead of changing it, so linked modules stay intact.

    Args:
        lender: Folder of the environment with compiled modules.
        borrower: Folder of the other environment.
    """
    for folder in lender.glob("lib/python*/site-packages"):
        for place, _, files in os.walk(folder):
            head, name = os.path.split(place)
            if name == _CACHE:
                _link_bytecode(Path(head), files, borrower / os.path.relpath(head, lender))


def _link_bytecode(here: Path, files: list[str], there: Path) -> None:
    """Link the compiled modules of a folder; Python compiles the others on import."""
    for file in files:
        # A compiled module is named `NAME.cpython-311.pyc`.
        source = f"{file.partition('.')[0]}.py"
        with contextlib.suppress(OSError):
            if (here / source).samefile(there / source):
                (there / _CACHE).mkdir(exist_ok=True)
                # A hard link: Python accepts bytecode by the time and size of its source, which is
                # the same.
                (there / _CACHE / file).hardlink_to(here / _CACHE / file)
