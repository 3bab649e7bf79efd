"""Environments in the cache, and the facts stored with each to check that it is intact."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cells.environment_locks import read_last_use
from conformance.cells.interpreter_inspection import inspect_interpreter
from conformance.errors import InfrastructureError
from conformance.files import MALFORMED, describe_os_error, write_atomically

if TYPE_CHECKING:
    from conformance.cells.lock import Lock

ENVIRONMENTS: Final = "envs"
"""Folder of the cache with the environments."""
FILE_NAME: Final = "conformance.json"
FORMAT: Final = 1


class EnvironmentFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts of an environment, written last: an environment without them is unfinished.

    Attributes:
        format: Version of this format.
        lock: Hash of the lock that it was created from.
        python: Python version, `major.minor.patch`.
        interpreter: Base interpreter.
        interpreter_size: Size of the base interpreter in bytes.
        interpreter_mtime_ns: Modification time of the base interpreter.
        dist_infos: Names of the `.dist-info` folders in site-packages.
        bytes: Sum of the sizes of its files; 0 if it was not measured.
    """

    format: int = FORMAT
    lock: str
    python: str
    interpreter: str
    interpreter_size: int
    interpreter_mtime_ns: int
    dist_infos: tuple[str, ...]
    bytes: int = 0


def get_environment_python(folder: Path) -> Path:
    """Return the interpreter of a virtual environment."""
    return folder / "bin" / "python"


def gather_facts(folder: Path, lock: Lock, size: int) -> EnvironmentFacts:
    """Run the interpreter of a finished environment and return the facts.

    Args:
        folder: Virtual environment.
        lock: Lock that it was created from.
        size: Sum of the sizes of its files.

    Raises:
        InfrastructureError: If the interpreter does not run.
        OSError: If the environment cannot be read.
    """
    found = inspect_interpreter(get_environment_python(folder))
    stat = Path(found.base).stat()
    return EnvironmentFacts(
        lock=lock.hash,
        python=found.version,
        interpreter=found.base,
        interpreter_size=stat.st_size,
        interpreter_mtime_ns=stat.st_mtime_ns,
        dist_infos=tuple(sorted(_list_dist_infos(folder, found.version))),
        bytes=size,
    )


def store_facts(folder: Path, facts: EnvironmentFacts) -> None:
    """Store facts in the environment that they describe.

    Args:
        folder: Virtual environment.
        facts: Facts to store.

    Raises:
        InfrastructureError: If they cannot be written.
    """
    write_atomically(folder / FILE_NAME, msgspec.json.encode(facts))


def read_facts(folder: Path) -> EnvironmentFacts | None:
    """Return the facts of an environment, None if it is unfinished or they are damaged.

    Args:
        folder: Virtual environment, which need not exist.
    """
    try:
        return msgspec.json.decode((folder / FILE_NAME).read_bytes(), type=EnvironmentFacts)
    except (OSError, *MALFORMED):
        return None


def remove_facts(folder: Path) -> None:
    """Remove the facts of an environment, which counts as missing from then on.

    Args:
        folder: Virtual environment, which need not exist.

    Raises:
        OSError: If they cannot be removed.
    """
    if folder.is_dir():
        (folder / FILE_NAME).unlink(missing_ok=True)


def is_intact(folder: Path, lock: Lock) -> bool:
    """Say whether an environment matches its lock and its stored facts.

    The environment's Python is run only if the base interpreter was replaced.

    Args:
        folder: Virtual environment, which need not exist.
        lock: Lock that it must have been created from.
    """
    facts = read_facts(folder)
    if facts is None or facts.format != FORMAT or facts.lock != lock.hash:
        return False
    python, base = get_environment_python(folder), Path(facts.interpreter)
    try:
        # Names only: hashing every file takes seconds. Packages in addition are no damage.
        if set(facts.dist_infos) - _list_dist_infos(folder, facts.python):
            return False
        if python.resolve(strict=True) != base.resolve():
            return False
        stat = base.stat()
        if (stat.st_size, stat.st_mtime_ns) == (facts.interpreter_size, facts.interpreter_mtime_ns):
            return True
        # A security update replaces the interpreter in place: the environment still works if the
        # version is the same.
        return inspect_interpreter(python).version == facts.python
    except (OSError, *MALFORMED, InfrastructureError):
        # Corrupt, incomplete and broken environments alike are created again.
        return False


def _list_dist_infos(folder: Path, version: str) -> set[str]:
    site = folder / "lib" / f"python{version.rpartition('.')[0]}" / "site-packages"
    return {path.name for path in site.iterdir() if path.suffix == ".dist-info"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEnvironment:
    """An environment in the cache.

    Attributes:
        folder: Virtual environment.
        lock: Hash of the lock that it was created from; empty if it is unfinished.
        used: Time of its last use, in seconds since the epoch.
    """

    folder: Path
    lock: str
    used: float

    @property
    def env_id(self) -> str:
        """Id of the environment, as `Cell.env_id`."""
        return self.folder.name.rpartition("-")[0]


def list_environments(cache: Path) -> list[StoredEnvironment]:
    """Return the environments in a cache folder, by name.

    Raises:
        InfrastructureError: If the folder cannot be read.
    """
    folder = cache / ENVIRONMENTS
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InfrastructureError(
            f"{folder}: cannot be read: {describe_os_error(error)}"
        ) from error
    return [_describe_environment(folder / name) for name in names]


def _describe_environment(folder: Path) -> StoredEnvironment:
    facts = read_facts(folder)
    return StoredEnvironment(
        folder=folder,
        lock="" if facts is None else facts.lock,
        # An environment of an older version, or of a read-only cache, has no mark of its use.
        used=read_last_use(folder) or _find_modification_time(folder),
    )


def _find_modification_time(folder: Path) -> float:
    for path in (folder / FILE_NAME, folder):
        try:
            return path.stat().st_mtime
        except OSError:
            continue
    return 0.0
