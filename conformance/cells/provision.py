"""Creation of a cell's environment from its lock with uv, and its reuse."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.cells.disk import find_room_problem, measure_usage
from conformance.cells.environment_locks import PATIENCE, hold_environment, lock_creation
from conformance.cells.interpreters import find_interpreter
from conformance.cells.lock import check_host
from conformance.cells.releases import NO_NIGHTLIES
from conformance.cells.stored_environments import (
    ENVIRONMENTS,
    gather_facts,
    get_environment_python,
    is_intact,
    remove_facts,
    store_facts,
)
from conformance.cells.uvtool import UvError, run_uv
from conformance.errors import InfrastructureError
from conformance.files import describe_os_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock

_DISK_ADVICE = "set CONFORMANCE_CACHE to a writable folder with free space"
# Rust prints errno: 28 no space left, 122 quota exceeded, 30 read-only, 13 permission denied.
_DISK_ERRORS = re.compile(r"\(os error (28|122|30|13)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A cell's environment, ready to use.

    Attributes:
        python: Interpreter of the environment.
        cell: Cell that it belongs to.
        lock: Lock that it was created from.
        versions: Version by normalised package name.
    """

    python: Path
    cell: Cell
    lock: Lock
    versions: Mapping[str, str]


def get_environment_folder(cell: Cell, lock: Lock, cache: Path) -> Path:
    """Return the folder of a cell's environment in the cache, which need not exist."""
    return cache / ENVIRONMENTS / f"{cell.env_id}-{lock.hash[:12]}"


def is_provisioned(cell: Cell, lock: Lock, cache: Path) -> bool:
    """Say whether a cell's environment exists and is intact."""
    # The environment of a `path:` cell is the user's: it is checked when its worker starts.
    return cell.interpreter is not None or is_intact(
        get_environment_folder(cell, lock, cache), lock
    )


def provision(cell: Cell, *, lock: Lock, cache: Path) -> Environment:
    """Return a cell's environment, created if it is missing or not intact.

    Two runs may need it at the same time: one creates it, the other waits and uses it.

    Args:
        cell: Cell to provision; for a `path:` cell nothing is created.
        lock: Lock of the cell, from `find_lock`.
        cache: Cache folder.

    Returns:
        The environment.

    Raises:
        MissingInterpreterError: If its Python cannot be found on this host.
        UnsupportedHostError: If the release has no wheels for this host.
        InfrastructureError: If uv fails, a hash does not match, or the disk fails; an incomplete
            environment is removed.
    """
    if cell.interpreter is not None:
        return Environment(python=cell.interpreter, cell=cell, lock=lock, versions=lock.pins)
    folder = get_environment_folder(cell, lock, cache)
    try:
        with hold_environment(folder):
            if not is_intact(folder, lock):
                # Checks that need no lock come first: they fail at once, not after a wait.
                check_host(lock)
                base = find_interpreter(cell.python)
                if problem := find_room_problem(cell, cache):
                    raise InfrastructureError(problem)
                with lock_creation(folder) as descriptor:
                    # Another run may have created it while this one waited.
                    if not is_intact(folder, lock):
                        _create(folder, base, lock, descriptor)
    except TimeoutError as error:
        raise InfrastructureError(
            f"{cell.id}: {folder}.lock has been held for {PATIENCE:.0f} s by another run"
        ) from error
    except OSError as error:
        raise InfrastructureError(
            f"{cell.id}: cannot set up {folder}: {describe_os_error(error)}; {_DISK_ADVICE}"
        ) from error
    except UvError as error:
        raise InfrastructureError(_explain_uv_error(cell, folder, lock, error)) from error
    return Environment(
        python=get_environment_python(folder), cell=cell, lock=lock, versions=lock.pins
    )


def _create(folder: Path, base: Path, lock: Lock, descriptor: int) -> None:
    # In place: a virtual environment contains its own path, so it cannot be moved. The facts are
    # removed first and stored last, so an interrupted set-up never counts as finished.
    remove_facts(folder)
    # uv refuses to create an environment in a folder that exists.
    _remove(folder)
    try:
        run_uv(
            ["venv", "--no-project", "--python", base, folder],
            cwd=folder.parent,
            pass_fds=(descriptor,),
        )
        released, nightlies = lock.split_nightlies()
        _install(folder, "lock.txt", released, descriptor)
        if nightlies:
            _install(folder, "nightly.txt", nightlies, descriptor, index=_get_nightly_index(lock))
        store_facts(folder, gather_facts(folder, lock, measure_usage(folder).apparent))
    except BaseException:
        _remove(folder)
        raise


def _get_nightly_index(lock: Lock) -> str:
    if not lock.nightly_index:
        raise InfrastructureError(f"{lock.headers.get('environment')}: {NO_NIGHTLIES}")
    return lock.nightly_index


def _install(folder: Path, name: str, text: str, descriptor: int, *, index: str = "") -> None:
    requirements = folder / name
    requirements.write_text(text, encoding="utf-8")
    where = ("--python", get_environment_python(folder), "--requirements", requirements)
    # The lock is complete: resolving again could only fail, and building could run code.
    how = ("--require-hashes", "--no-deps", "--only-binary", ":all:")
    run_uv(["pip", "install", *where, *how], cwd=folder.parent, index=index, pass_fds=(descriptor,))


def _remove(folder: Path) -> None:
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _explain_uv_error(cell: Cell, folder: Path, lock: Lock, error: UvError) -> str:
    stderr = " ".join(error.stderr.split())  # uv wraps long lines
    if "Hash mismatch" in stderr:
        return f"{cell.id}: {lock.path}: {error}; lock again if you trust the index"
    advice = f"; {_DISK_ADVICE}" if _DISK_ERRORS.search(stderr) else ""
    return f"{cell.id}: cannot set up {folder}: {error}{advice}"
