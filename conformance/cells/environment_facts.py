"""Facts stored about a provisioned environment, and whether they still hold."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from conformance.cells.interpreter_inspection import inspect_interpreter
from conformance.errors import InfrastructureError
from conformance.files import MALFORMED, write_atomically

if TYPE_CHECKING:
    from conformance.cells.lock import Lock

FILE_NAME = "conformance.json"
FORMAT = 1


class EnvironmentFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts of an environment, written last: without them it is not finished.

    Attributes:
        format: Version of this format.
        lock: Hash of the lock it was made from.
        python: Python version, `major.minor.patch`.
        interpreter: Base interpreter.
        interpreter_size: Its size in bytes.
        interpreter_mtime_ns: Its modification time.
        dist_infos: Folders in site-packages that say what is installed.
        bytes: Sum of the sizes of its files; 0 where it was not looked at.
    """

    format: int = FORMAT
    lock: str
    python: str
    interpreter: str
    interpreter_size: int
    interpreter_mtime_ns: int
    dist_infos: tuple[str, ...]
    bytes: int = 0


def environment_python(folder: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return folder / "bin" / "python"


def gather_facts(folder: Path, lock: Lock, size: int) -> EnvironmentFacts:
    """Run a finished environment's interpreter and return the facts.

    Args:
        folder: Virtual environment.
        lock: Lock it was made from.
        size: Sum of the sizes of its files.

    Returns:
        The facts.

    Raises:
        InfrastructureError: If the interpreter does not run.
        OSError: If the environment cannot be read.
    """
    found = inspect_interpreter(environment_python(folder))
    stat = Path(found.base).stat()
    return EnvironmentFacts(
        lock=lock.hash,
        python=found.version,
        interpreter=found.base,
        interpreter_size=stat.st_size,
        interpreter_mtime_ns=stat.st_mtime_ns,
        dist_infos=tuple(sorted(_dist_infos(folder, found.version))),
        bytes=size,
    )


def store_facts(folder: Path, facts: EnvironmentFacts) -> None:
    """Store facts beside the environment they are about.

    Args:
        folder: Virtual environment.
        facts: Facts to store.

    Raises:
        InfrastructureError: If they cannot be written.
    """
    write_atomically(folder / FILE_NAME, msgspec.json.encode(facts))


def read_facts(folder: Path) -> EnvironmentFacts | None:
    """Return the facts of an environment, None if it is not finished, or they are damaged.

    Args:
        folder: Virtual environment, which need not exist.
    """
    try:
        return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=EnvironmentFacts)
    except (OSError, *MALFORMED):
        return None


def drop_facts(folder: Path) -> None:
    """Remove the facts of an environment, which from then on counts as not there.

    Args:
        folder: Virtual environment, which need not exist.

    Raises:
        OSError: If they cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        (folder / FILE_NAME).unlink()


def facts_hold(folder: Path, lock: Lock) -> bool:
    """Say whether an environment is what its stored facts say, without running anything.

    Only if the interpreter was replaced in the meantime is the environment's python run.

    Args:
        folder: Virtual environment, which need not exist.
        lock: Lock it must have been made from.

    Returns:
        True when it can be used as it is.
    """
    facts = read_facts(folder)
    if facts is None or facts.format != FORMAT or facts.lock != lock.hash:
        return False
    try:
        missing = set(facts.dist_infos) - _dist_infos(folder, facts.python)
        linked = environment_python(folder).resolve(strict=True)
        return not missing and linked == Path(facts.interpreter).resolve() and _runs(folder, facts)
    except (OSError, *MALFORMED, InfrastructureError):
        # Corrupt, half made or broken alike: what does not hold is made again.
        return False


def _runs(folder: Path, facts: EnvironmentFacts) -> bool:
    stat = Path(facts.interpreter).stat()
    seen = (facts.interpreter_size, facts.interpreter_mtime_ns)
    if (stat.st_size, stat.st_mtime_ns) == seen:
        return True
    return inspect_interpreter(environment_python(folder)).version == facts.python


def _dist_infos(folder: Path, version: str) -> set[str]:
    site = folder / "lib" / f"python{version.rpartition('.')[0]}" / "site-packages"
    with os.scandir(site) as entries:
        return {entry.name for entry in entries if entry.name.endswith(".dist-info")}
