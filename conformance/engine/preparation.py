"""From cells to planned cells: their locks and interpreters, before anything is provisioned."""

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
from conformance.cells.provision import environment_folder, provision
from conformance.cells.requirements import parse_requirement
from conformance.cells.resolver import explain_refusal
from conformance.cells.uvtool import NoSolutionError
from conformance.engine.client import Worker
from conformance.engine.job import PlannedCell
from conformance.engine.worker_probes import UnsupportedCellError, check_cell, needs_check
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
"""Locks looked up at the same time: mostly files, now and then a resolution over the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """Cells that can be planned for, cells that are left out, and their locks."""

    cells: tuple[PlannedCell, ...]
    exclusions: tuple[Exclusion, ...]
    locks: Mapping[str, Lock]


class Provider:
    """Opens workers: provisions a planned cell's environment and checks what answers.

    Args:
        locks: Lock of each cell, by cell id.
        cache: Cache folder.
        spawn: Whether workers run each job in a fresh interpreter.
        require_platform: Whether an accelerator that is not there is a fault of the host.
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
        """Return a worker of a cell, its identity checked.

        Raises:
            InfrastructureError: If the cell cannot be provided, or is not what the lock says.
            UnsupportedCellError: If the release or this host cannot serve the cell.
        """
        if planned.failure:
            raise InfrastructureError(planned.failure)
        if planned.missing:
            raise self._refuse(planned, planned.missing)
        cell = planned.cell
        with self._hold(cell) as holds:
            environment = provision(cell, lock=self._locks[cell.id], cache=self._cache)
            beside = {"PYTHONPATH": planned.overlay} if planned.overlay else {}
            worker = Worker(
                environment.python,
                variables={**cell.place.environment, **beside},
                spawn=self._spawn,
                keep_python_path=cell.interpreter is not None,
                passed=planned.passed,
                holds=holds,
            )
        wrong = find_identity_mismatch(planned, worker.identity["versions"])
        if wrong:
            worker.close()
            raise InfrastructureError(
                f"{cell.id}: {wrong}; delete {environment.python.parent.parent} to make it anew"
            )
        try:
            self._check(worker, planned)
        except BaseException:
            worker.close()
            raise
        return worker

    @contextmanager
    def _hold(self, cell: Cell) -> Iterator[Sequence[int]]:
        """Hold the cell's environment from before it is looked for until a worker does."""
        if cell.interpreter is not None:
            yield ()
            return
        folder = environment_folder(cell, self._locks[cell.id], self._cache)
        try:
            with hold_environment(folder) as descriptor:
                yield (descriptor,)
        except OSError as error:
            raise disk_error(folder, error) from error

    def _check(self, worker: Worker, planned: PlannedCell) -> None:
        """Try the cell when it is opened first; not when its worker is replaced."""
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
    """Return how a worker differs from its cell's lock, empty when it does not.

    Args:
        planned: The cell as planned.
        versions: Package versions as the worker reports them.

    Returns:
        The first package that differs.
    """
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
) -> Preparation:
    """Look up each cell's lock and interpreter.

    Args:
        cells: Cells of the run.
        releases: Known releases.
        folders: Matrix folders, for committed locks.
        cache: Cache folder.
        wanted: Requirements beside what the locks have, or instead of it: no other package of
            theirs moves for them.
        passed: Variables that the user passes on to the cells.
        download: Whether uv may download a Python that is missing.

    Returns:
        What can be planned. A cell that has no wheels for this host, or whose requirements have no
        solution, is an exclusion; one whose Python or lock cannot be had now is planned to fail as
        infra, one whose accelerator this host lacks to be unsupported; one that
        what is wanted does not go with is an exclusion that says which requirement forbids it.
    """

    def look(cell: Cell) -> tuple[PlannedCell | Exclusion, Lock | None]:
        missing = find_missing_accelerator(cell.place)
        try:
            if missing and cell.interpreter is None:
                # Nothing is resolved or installed for what is not here.
                return plan_cell(cell, missing=missing), None
            python = cell.interpreter or find_interpreter(cell.python, download=download)
            lock = find_lock(cell, releases, folders=folders, cache=cache)
            if cell.interpreter is None:
                check_host(lock)
            note = describe_edits(cell.interpreter) if cell.interpreter is not None else ""
            beside = _beside(python, lock, tuple(wanted), cache)
        except (UnsupportedHostError, UsageError) as error:
            reason = str(error).removeprefix(f"{cell.id}: ")
            return Exclusion(case="", cell=cell.id, reason=reason), None
        except InfrastructureError as error:
            return plan_cell(cell, failure=str(error)), None
        made = plan_cell(cell, lock, beside, missing=missing, passed=passed)
        return replace(made, note=note), lock

    unique = list(dict.fromkeys(cells))
    with ThreadPoolExecutor(RESOLVERS) as pool:
        found = list(pool.map(look, unique))
    return Preparation(
        cells=tuple(one for one, _ in found if isinstance(one, PlannedCell)),
        exclusions=tuple(one for one, _ in found if isinstance(one, Exclusion)),
        locks={cell.id: lock for cell, (_, lock) in zip(unique, found, strict=True) if lock},
    )


def plan_recorded_cells(
    cells: Iterable[Cell], releases: Releases, *, folders: tuple[Path, ...], cache: Path
) -> tuple[PlannedCell, ...]:
    """Return cells as goldens have them: planned from their locks alone, alike on every host.

    Args:
        cells: The cells; those that no environment satisfies are left out.
        releases: Known releases.
        folders: Matrix folders, for committed locks.
        cache: Cache folder.

    Raises:
        InfrastructureError: If a lock cannot be had now.
    """
    found = []
    for cell in dict.fromkeys(cells):
        with suppress(UsageError):
            lock = find_lock(cell, releases, folders=folders, cache=cache)
            found.append(plan_cell(cell, lock))
    return tuple(found)


def _beside(python: Path, lock: Lock, wanted: tuple[str, ...], cache: Path) -> Path | None:
    """Return a folder with what is wanted; a refusal of the resolver's is one of the cell."""
    try:
        return find_overlay(python, lock, wanted, cache)
    except NoSolutionError as error:
        named = (one.name if one.url else str(one) for one in map(parse_requirement, wanted))
        raise UsageError(f"does not go with {', '.join(named)}: {explain_refusal(error)}") from None


def plan_cell_with(
    cell: Cell, lock: Lock, wanted: Sequence[str], cache: Path, passed: Mapping[str, str]
) -> PlannedCell:
    """Return a cell as it is planned for, with what is wanted beside its packages.

    Where it does not go with them, the cell is planned to be unsupported, with the requirement that
    forbids it.

    Args:
        cell: The cell.
        lock: Its lock.
        wanted: Requirements, as for `prepare_cells`.
        cache: Cache folder.
        passed: Variables that the user passes on to the cell.

    Raises:
        InfrastructureError: If what is wanted cannot be had now.
    """
    python = cell.interpreter or find_interpreter(cell.python)
    try:
        beside = _beside(python, lock, tuple(wanted), cache)
    except UsageError as error:
        return plan_cell(cell, lock, missing=str(error), passed=passed)
    return plan_cell(cell, lock, beside, passed=passed)


def plan_cell(
    cell: Cell,
    lock: Lock | None = None,
    beside: Path | None = None,
    *,
    failure: str = "",
    missing: str = "",
    passed: Mapping[str, str] | None = None,
) -> PlannedCell:
    """Return a cell as it is planned for.

    Args:
        cell: The cell.
        lock: Its lock, None where there is none.
        beside: Folder of packages beside those of the lock, None for none.
        failure: Why it cannot be provided.
        missing: Why this host cannot serve it.
        passed: Variables that the user passes on to it.
    """
    versions = lock.pins if lock is not None else {"jax": cell.release}
    # Without a hash nothing that is recorded of the cell now stands for it later.
    facts = "" if lock is None or missing else f"{cell.id} {cell.python} {lock.hash}"
    if beside is not None:
        versions = {**versions, **read_installed_versions(beside)}
        facts += f" {get_overlay_hash(beside)}" if facts else ""
    if passed and facts:
        facts += f" {json.dumps(passed, sort_keys=True)}"
    return PlannedCell(
        cell=cell,
        versions=versions,
        lock_hash=lock.hash if lock is not None else "",
        cell_hash=hashlib.sha256(facts.encode()).hexdigest()[:16] if facts else "",
        failure=failure,
        missing=missing,
        overlay="" if beside is None else str(beside),
        layer="" if beside is None else get_overlay_hash(beside),
        passed=passed or {},
    )
