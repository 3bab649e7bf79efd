"""The files that a suite depends on: what its tests are cached by."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.engine.input_files import hash_content
from conformance.errors import UsageError
from conformance.files import describe_os_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MARKS: Final = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", ".git")
"""What stands in the uppermost folder of a project."""
READ: Final = frozenset({".py", ".pyi", ".toml", ".cfg", ".ini"})
"""Endings of the files that count wherever they are in a project."""
_PASSED_OVER: Final = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})


def project_of(paths: Iterable[Path]) -> Path | None:
    """Return the folder of the project that paths are of, None where none can be told.

    Args:
        paths: Absolute paths of files and folders.
    """
    common = Path(os.path.commonpath(list(paths)))
    folders = (common, *common.parents)
    return next((f for f in folders if any((f / mark).exists() for mark in MARKS)), None)


def hash_of(paths: Iterable[Path], *facts: str) -> str:
    """Return the hash of all that decides what tests do, but for the cell.

    Of the project that is Python code and configuration, for tests may import any of it; of the
    suite's own folders it is every file. Without a project it is what lies beside a single file.

    Args:
        paths: The suite's files and folders, absolute.
        facts: What else decides.

    Raises:
        UsageError: If a file cannot be read.
    """
    own = list(paths)
    digest = hashlib.sha256(repr(facts).encode("utf-8", "backslashreplace"))
    for file in sorted(set(_files(own))):
        digest.update(f"{file}\0".encode("utf-8", "surrogateescape"))
        try:
            digest.update(hash_content(file).encode())
        except FileNotFoundError:  # a link to nothing, or removed just now
            continue
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None
    return digest.hexdigest()[:16]


def content_of(folder: Path) -> str:
    """Return the hash of what is in a folder, wherever that is, without what is made there.

    Args:
        folder: The folder.

    Raises:
        UsageError: If a file cannot be read.
    """
    digest = hashlib.sha256()
    for file in sorted(files_below(folder)):
        digest.update(f"{file.relative_to(folder)}\0".encode("utf-8", "surrogateescape"))
        try:
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None
    return digest.hexdigest()


def _files(paths: list[Path]) -> Iterator[Path]:
    project = project_of(paths)
    if project is not None:
        yield from files_below(project, every=False)
    for path in paths:
        if path.is_dir():
            yield from files_below(path)
            continue
        yield path
        if project is None:
            yield from path.parent.glob("*.py")


def files_below(folder: Path, *, every: bool = True) -> Iterator[Path]:
    """Yield files below a folder: none in hidden folders, none of environments, none made.

    Args:
        folder: The folder.
        every: Whether not only Python code and configuration counts.
    """
    for name, folders, files in os.walk(folder):
        here = Path(name)
        folders[:] = [f for f in folders if not _made(here / f)]
        for file in files:
            if every or os.path.splitext(file)[1] in READ:  # noqa: PTH122 - there are many
                yield here / file


def _made(folder: Path) -> bool:
    """Say whether a folder holds what is made: an environment, a build, runs of ours."""
    name = folder.name
    if name.startswith(".") or name in _PASSED_OVER or name.endswith(".egg-info"):
        return True
    return (folder / "pyvenv.cfg").exists() or (name == "reports" and (folder / "runs").is_dir())
