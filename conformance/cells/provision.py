"""Making a cell's environment from its lock with uv, once, and using it again."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.cells.disk import ENVIRONMENTS, find_room_problem, measure_usage
from conformance.cells.environment_facts import (
    drop_facts,
    environment_python,
    facts_hold,
    gather_facts,
    store_facts,
)
from conformance.cells.environment_locks import PATIENCE, hold_environment, lock_creation
from conformance.cells.interpreters import find_interpreter
from conformance.cells.lock import check_host
from conformance.cells.releases import NO_NIGHTLIES
from conformance.cells.uvtool import UvError, run_uv
from conformance.errors import InfrastructureError
from conformance.files import describe_os_error

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock

_MAKE_ROOM = "set CONFORMANCE_CACHE to a folder that can be written and has room"
# As uv prints them: no space left, quota exceeded, read-only, permission denied.
_DISK_ERRORS = re.compile(r"\(os error (28|122|30|13)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A cell's environment, ready to use.

    Attributes:
        python: Its interpreter.
        cell: Cell it is for.
        lock: Lock it was made from.
        versions: Version by normalised package name.
    """

    python: Path
    cell: Cell
    lock: Lock
    versions: Mapping[str, str]


def environment_folder(cell: Cell, lock: Lock, cache: Path) -> Path:
    """Return the folder that a cell's environment has or would have in the cache."""
    return cache / ENVIRONMENTS / f"{cell.env_id}-{lock.hash[:12]}"


def is_provisioned(cell: Cell, lock: Lock, cache: Path) -> bool:
    """Say whether a cell's environment is there and holds, without making it."""
    return cell.interpreter is not None or facts_hold(environment_folder(cell, lock, cache), lock)


def provision(cell: Cell, *, lock: Lock, cache: Path) -> Environment:
    """Return a cell's environment, made now if it is not there or does not hold any more.

    Two runs may ask at once: one makes it, the other waits and uses it.

    Args:
        cell: Cell to provide; for a `path:` cell nothing is made.
        lock: Its lock, from `find_lock`.
        cache: Cache folder.

    Returns:
        The environment.

    Raises:
        MissingInterpreterError: If its Python is not on this host.
        UnsupportedHostError: If the release has no wheels for this host.
        InfrastructureError: If uv fails, a hash does not match, or the disk refuses; nothing
            that could be mistaken for an environment is left behind.
    """
    if cell.interpreter is not None:
        return Environment(python=cell.interpreter, cell=cell, lock=lock, versions=lock.pins)
    folder = environment_folder(cell, lock, cache)
    try:
        with hold_environment(folder):
            if not facts_hold(folder, lock):
                check_host(lock)
                base = find_interpreter(cell.python)
                if problem := find_room_problem(cell, cache):
                    raise InfrastructureError(problem)
                with lock_creation(folder) as held:
                    # Another run may have made it while this one waited.
                    if not facts_hold(folder, lock):
                        _make(folder, base, lock, held)
    except TimeoutError as error:
        raise InfrastructureError(
            f"{cell.id}: {folder}.lock has been held for {PATIENCE:.0f} s by another run"
        ) from error
    except OSError as error:
        raise InfrastructureError(
            f"{cell.id}: cannot set up {folder}: {describe_os_error(error)}; {_MAKE_ROOM}"
        ) from error
    except UvError as error:
        raise InfrastructureError(_uv_problem(cell, folder, lock, error)) from error
    return Environment(python=environment_python(folder), cell=cell, lock=lock, versions=lock.pins)


def _make(folder: Path, base: Path, lock: Lock, held: int) -> None:
    # In place, for a virtual environment knows its own path; the facts go first and come last,
    # so an interrupted set-up is never taken for a finished one.
    drop_facts(folder)
    _remove(folder)
    try:
        run_uv(["venv", "--no-project", "--python", base, folder], cwd=folder.parent, holds=(held,))
        released, nightly = lock.parts()
        _install(folder, "lock.txt", released, held)
        if nightly:
            _install(folder, "nightly.txt", nightly, held, index=_nightly_index(lock))
        store_facts(folder, gather_facts(folder, lock, measure_usage(folder).apparent))
    except BaseException:
        _remove(folder)
        raise


def _install(folder: Path, name: str, text: str, held: int, *, index: str = "") -> None:
    requirements = folder / name
    requirements.write_text(text, encoding="utf-8")
    run_uv(
        [
            *(
                "pip",
                "install",
                "--python",
                environment_python(folder),
                "--requirements",
                requirements,
            ),
            *("--require-hashes", "--no-deps", "--only-binary", ":all:"),
        ],
        cwd=folder.parent,
        index=index,
        holds=(held,),
    )


def _nightly_index(lock: Lock) -> str:
    if not lock.nightly_index:
        raise InfrastructureError(f"{lock.headers.get('environment')}: {NO_NIGHTLIES}")
    return lock.nightly_index


def _remove(folder: Path) -> None:
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _uv_problem(cell: Cell, folder: Path, lock: Lock, error: UvError) -> str:
    said = " ".join(error.stderr.split())  # uv breaks lines where they get long
    if "Hash mismatch" in said:
        return f"{cell.id}: {lock.path}: {error}; lock again if the index is to be trusted"
    advice = f"; {_MAKE_ROOM}" if _DISK_ERRORS.search(said) else ""
    return f"{cell.id}: cannot set up {folder}: {error}{advice}"
