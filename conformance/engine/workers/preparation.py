"""Preparation of cells: their locks and interpreters before provisioning, then their workers."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from conformance.cells.accelerators import find_missing_accelerator
from conformance.cells.environment_locks import hold_environment
from conformance.cells.interpreter_inspection import describe_edits
from conformance.cells.interpreters import find_interpreter
from conformance.cells.lock import UnsupportedHostError, check_host
from conformance.cells.lock_resolution import find_lock
from conformance.cells.overlay import find_overlay, get_overlay_hash, read_installed_versions
from conformance.cells.provision import get_environment_folder, provision
from conformance.cells.requirements import parse_requirement
from conformance.cells.resolver import explain_refusal
from conformance.cells.uvtool import NoSolutionError
from conformance.engine.job import PlannedCell
from conformance.engine.workers.client import Worker
from conformance.engine.workers.probes import UnsupportedCellError, check_cell, needs_check
from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.files import disk_error
from conformance.model.run import Exclusion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.cells.releases import Releases

RESOLVERS = 4
"""Locks that are looked up in parallel: mostly files, rarely resolutions over the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """Planned cells, excluded cells, and locks by cell id."""

    cells: tuple[PlannedCell, ...]
    exclusions: tuple[Exclusion, ...]
    locks: Mapping[str, Lock]


class Provider:
    """Opens workers: provisions the environment of a planned cell and checks its worker.

    Args:
        locks: Lock of each cell, by cell id.
        cache: Cache folder.
        spawn: Whether workers run each job in a fresh interpreter.
        require_platform: Whether a missing accelerator is a fault of the host.
    """

    def __init__(
        self,
        locks: Mapping[str, Lock],
        cache: Path,
        *,
        spawn: bool = False,
        require_platform: bool = False,
    ) -> None:
        self._locks = locks
        self._cache = cache
        self._spawn = spawn
        self._require_platform = require_platform
        self._checked: set[str] = set()

    def open(self, planned: PlannedCell) -> Worker:
        """Open a worker of a cell and check its identity.

        Raises:
            InfrastructureError: If the cell cannot be provided, or does not match its lock.
            UnsupportedCellError: If the release or this host cannot serve the cell.
        """
        if planned.failure:
            raise InfrastructureError(planned.failure)
        if planned.missing:
            raise self._refuse(planned, planned.missing)
        cell = planned.cell
        with self._hold(cell) as holds:
            environment = provision(cell, lock=self._locks[cell.id], cache=self._cache)
            path = {"PYTHONPATH": planned.python_path} if planned.python_path else {}
            worker = Worker(
                environment.python,
                variables={**cell.place.environment, **path},
                spawn=self._spawn,
                keep_python_path=cell.interpreter is not None,
                passed=planned.passed,
                holds=holds,
            )
        # An environment can be changed behind our back, and its verdicts would be about another
        # cell.
        wrong = find_identity_mismatch(planned, worker.identity["versions"])
        if wrong:
            worker.close()
            raise InfrastructureError(
                f"{cell.id}: {wrong}; delete {environment.python.parent.parent} to make it again"
            )
        try:
            self._check(worker, planned)
        except BaseException:
            worker.close()
            raise
        return worker

    @contextmanager
    def _hold(self, cell: Cell) -> Iterator[Sequence[int]]:
        """Hold the environment of a cell, so that it is not removed before its worker starts."""
        # The worker inherits the descriptor, and with it the lock, until it ends.
        if cell.interpreter is not None:
            yield ()
            return
        folder = get_environment_folder(cell, self._locks[cell.id], self._cache)
        try:
            with hold_environment(folder) as descriptor:
                yield (descriptor,)
        except OSError as error:
            raise disk_error(folder, error) from error

    def _check(self, worker: Worker, planned: PlannedCell) -> None:
        """Check the cell, but not again if its worker is replaced."""
        if planned.cell.id in self._checked or not needs_check(planned):
            return
        try:
            check_cell(worker, planned)
        except UnsupportedCellError as error:
            raise self._refuse(planned, str(error)) from error
        self._checked.add(planned.cell.id)

    def _refuse(self, planned: PlannedCell, reason: str) -> ConformanceError:
        if planned.cell.place.real and self._require_platform:
            return InfrastructureError(f"{planned.cell.id}: {reason}")
        return UnsupportedCellError(reason)


def find_identity_mismatch(planned: PlannedCell, versions: Mapping[str, str]) -> str:
    """Return how a worker differs from its cell's lock, empty if it does not.

    Args:
        planned: The planned cell.
        versions: Package versions that the worker reports.
    """
    # Other packages may be installed, e.g. pip; only those of the lock matter.
    for name, expected in sorted(planned.versions.items()):
        if (got := versions.get(name, "none")) != expected:
            return f"the worker has {name} {got}, expected {expected}"
    return ""


def prepare_cells(
    cells: Iterable[Cell],
    releases: Releases,
    *,
    folders: tuple[Path, ...],
    cache: Path,
    wanted: Sequence[str] = (),
    passed: Mapping[str, str] | None = None,
    download: bool = True,
    elsewhere: bool = False,
) -> Preparation:
    """Look up each cell's lock and interpreter.

    Args:
        cells: Cells of the run.
        releases: Known releases.
        folders: Matrix folders, for committed locks.
        cache: Cache folder.
        wanted: Requirements in addition to the locks; they may replace locked packages, but no
            other package changes version for them.
        passed: Variables that the user passes on to the cells.
        download: Whether uv may download a Python that is missing.
        elsewhere: Whether the cells are provided on other hosts, so that the Pythons and the
            accelerators of this host do not count.

    Returns:
        The planned cells. A cell without wheels for this host, or without a solution for its
        requirements or for `wanted`, is an exclusion. A cell whose Python or lock is unavailable is
        planned as `infra`, one whose accelerator is missing as `unsupported`.
    """

    def prepare(cell: Cell) -> tuple[PlannedCell | Exclusion, Lock | None]:
        missing = "" if elsewhere else find_missing_accelerator(cell.place)
        try:
            if missing and cell.interpreter is None:
                # Nothing is resolved or installed for a missing accelerator.
                return plan_cell(cell, missing=missing), None
            # Before the lock: a missing Python is a fault of the host, and no resolution helps.
            python = cell.interpreter
            # Additional packages are resolved by the Python of the cell, wherever its jobs run.
            if python is None and (wanted or not elsewhere):
                python = find_interpreter(cell.python, download=download)
            lock = find_lock(cell, releases, folders=folders, cache=cache)
            if cell.interpreter is None and not elsewhere:
                check_host(lock)
            note = describe_edits(cell.interpreter) if cell.interpreter is not None else ""
            overlay = None
            if python is not None:
                overlay = _resolve_overlay(python, lock, tuple(wanted), cache)
        except (UnsupportedHostError, UsageError) as error:
            reason = str(error).removeprefix(f"{cell.id}: ")
            return Exclusion(case="", cell=cell.id, reason=reason), None
        except InfrastructureError as error:
            return plan_cell(cell, failure=str(error)), None
        made = plan_cell(cell, lock, overlay, missing=missing, passed=passed)
        return replace(made, note=note), lock

    unique = list(dict.fromkeys(cells))
    with ThreadPoolExecutor(RESOLVERS) as pool:
        prepared = list(pool.map(prepare, unique))
    return Preparation(
        cells=tuple(planned for planned, _ in prepared if isinstance(planned, PlannedCell)),
        exclusions=tuple(planned for planned, _ in prepared if isinstance(planned, Exclusion)),
        locks={cell.id: lock for cell, (_, lock) in zip(unique, prepared, strict=True) if lock},
    )


def plan_recorded_cells(
    cells: Iterable[Cell], releases: Releases, *, folders: tuple[Path, ...], cache: Path
) -> tuple[PlannedCell, ...]:
    """Return cells planned from their locks alone, as goldens have them: the same on every host.

    Args:
        cells: The cells; those that cannot be resolved are left out.
        releases: Known releases.
        folders: Matrix folders, for committed locks.
        cache: Cache folder.

    Raises:
        InfrastructureError: If a lock is unavailable.
    """
    planned = []
    for cell in dict.fromkeys(cells):
        with suppress(UsageError):
            lock = find_lock(cell, releases, folders=folders, cache=cache)
            planned.append(plan_cell(cell, lock))
    return tuple(planned)


def _resolve_overlay(python: Path, lock: Lock, wanted: tuple[str, ...], cache: Path) -> Path | None:
    """Return the overlay with the wanted packages, None if none are wanted."""
    try:
        return find_overlay(python, lock, wanted, cache)
    except NoSolutionError as error:
        named = (
            requirement.name if requirement.url else str(requirement)
            for requirement in map(parse_requirement, wanted)
        )
        raise UsageError(f"does not go with {', '.join(named)}: {explain_refusal(error)}") from None


def plan_cell_with(
    cell: Cell, lock: Lock, wanted: Sequence[str], cache: Path, passed: Mapping[str, str]
) -> PlannedCell:
    """Return a planned cell with additional packages.

    If they conflict with its own packages, the cell is planned as unsupported.

    Args:
        cell: Cell to plan.
        lock: Its lock.
        wanted: Requirements, as for `prepare_cells`.
        cache: Cache folder.
        passed: Variables that the user passes on to the cell.

    Raises:
        InfrastructureError: If the wanted packages are unavailable.
    """
    python = cell.interpreter or find_interpreter(cell.python)
    try:
        overlay = _resolve_overlay(python, lock, tuple(wanted), cache)
    except UsageError as error:
        return plan_cell(cell, lock, missing=str(error), passed=passed)
    return plan_cell(cell, lock, overlay, passed=passed)


def plan_cell(
    cell: Cell,
    lock: Lock | None = None,
    overlay: Path | None = None,
    *,
    failure: str = "",
    missing: str = "",
    passed: Mapping[str, str] | None = None,
) -> PlannedCell:
    """Return a planned cell.

    Args:
        cell: Cell to plan.
        lock: Lock of the cell, None if it has none.
        overlay: Folder of packages in addition to those of the lock, None for none.
        failure: Why the cell cannot be provided.
        missing: Why this host cannot serve the cell.
        passed: Variables that the user passes on to the cell.
    """
    versions = lock.pins if lock is not None else {"jax": cell.release}
    # An empty hash matches nothing: results of such a cell are never reused.
    facts = "" if lock is None or missing else f"{cell.id} {cell.python} {lock.hash}"
    if overlay is not None:
        versions = {**versions, **read_installed_versions(overlay)}
        facts += f" {get_overlay_hash(overlay)}" if facts else ""
    # A program may observe the variables, so that they are part of what decides its result.
    if passed and facts:
        facts += f" {json.dumps(passed, sort_keys=True)}"
    return PlannedCell(
        cell=cell,
        versions=versions,
        lock_hash=lock.hash if lock is not None else "",
        cell_hash=hashlib.sha256(facts.encode()).hexdigest()[:16] if facts else "",
        failure=failure,
        missing=missing,
        overlay="" if overlay is None else str(overlay),
        layer="" if overlay is None else get_overlay_hash(overlay),
        passed=passed or {},
    )
