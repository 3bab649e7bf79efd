"""The files of a suite: the hash that results are cached by, and the changes that tests make."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.engine.input_files import hash_content
from conformance.errors import UsageError
from conformance.files import describe_os_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    FileStates = Mapping[str, tuple[int, int]]
    """Size in bytes and modification time in nanoseconds of files, by path."""

PROJECT_FILES: Final = (
    "pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg", "setup.py", ".git",
)  # fmt: skip
"""Files and folders that identify the top folder of a project."""
SUFFIXES: Final = frozenset({".py", ".pyi", ".toml", ".cfg", ".ini"})
"""Suffixes of the files that count anywhere in a project."""
_GENERATED: Final = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})


def find_project(paths: Iterable[Path]) -> Path | None:
    """Return the folder of the project of some paths, None if there is no project.

    Args:
        paths: Absolute paths of files and folders.
    """
    # Of all paths together: a suite may have folders next to each other.
    common = Path(os.path.commonpath(list(paths)))
    folders = (common, *common.parents)
    return next((f for f in folders if any((f / name).exists() for name in PROJECT_FILES)), None)


def hash_inputs(paths: Iterable[Path], *facts: str) -> str:
    """Return the hash of everything that decides the results of tests, except the cell.

    In the project these are Python code and configuration, because tests may import any of it; in
    the suite's own folders, every file. Without a project they are the modules next to the file.

    Args:
        paths: The suite's files and folders, absolute.
        facts: Further facts that decide.

    Raises:
        UsageError: If a file cannot be read.
    """
    own = list(paths)
    digest = hashlib.sha256(repr(facts).encode("utf-8", "backslashreplace"))
    for file in sorted(set(_find_inputs(own))):
        _add_file(digest, file, file, lambda file: hash_content(file).encode())
    return digest.hexdigest()[:16]


def hash_folder(folder: Path) -> str:
    """Return the hash of the files of a folder, except generated ones; its path has no influence.

    Args:
        folder: Folder to hash.

    Raises:
        UsageError: If a file cannot be read.
    """
    digest = hashlib.sha256()
    for file in sorted(walk_files(folder)):
        name = file.relative_to(folder)
        # Every byte counts, also of large files: a checkout must be exactly as it was
        # fetched.
        _add_file(digest, name, file, lambda file: hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _add_file(
    digest: hashlib._Hash, name: Path, file: Path, hash_file: Callable[[Path], bytes]
) -> None:
    # File names may be no UTF-8: Python decodes them with surrogates.
    digest.update(f"{name}\0".encode("utf-8", "surrogateescape"))
    try:
        digest.update(hash_file(file))
    except FileNotFoundError:  # a dangling link, or a file that was removed meanwhile
        return
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None


def _find_inputs(paths: list[Path]) -> Iterator[Path]:
    project = find_project(paths)
    if project is not None:
        yield from walk_files(project, every=False)
    for path in paths:
        if path.is_dir():
            yield from walk_files(path)
            continue
        yield path
        if project is None:
            yield from path.parent.glob("*.py")


def walk_files(folder: Path, *, every: bool = True) -> Iterator[Path]:
    """Yield the files below a folder, except hidden folders, environments and generated files.

    Args:
        folder: Folder to walk.
        every: Whether to yield every file instead of only Python code and configuration.
    """
    for name, folders, files in os.walk(folder):
        parent = Path(name)
        folders[:] = [inner for inner in folders if not _is_generated(parent / inner)]
        for file in files:
            if every or os.path.splitext(file)[1] in SUFFIXES:  # noqa: PTH122 - a project has many files
                yield parent / file


def _is_generated(folder: Path) -> bool:
    """Say whether a folder is hidden, an environment, a build or a folder of run directories."""
    name = folder.name
    if name.startswith(".") or name in _GENERATED or name.endswith(".egg-info"):
        return True
    # Every run adds to its folder `reports/runs`: if that counted, no result would be cached.
    return (folder / "pyvenv.cfg").exists() or (name == "reports" and (folder / "runs").is_dir())


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanges:
    """Files that tests have changed, by path, sorted.

    Attributes:
        added: New files.
        changed: Files that differ.
        removed: Files that are gone.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.added or self.changed or self.removed)


def scan_files(paths: Iterable[str], checkout: Path | None) -> FileStates:
    """Return the size and the modification time of each file of a suite, by its path.

    Args:
        paths: Paths of the user's own suite, in which hidden and generated files do not count.
        checkout: Folder of the checkout of a suite in the cache, in which every file counts; None
            for the user's own suite.
    """
    files = _list_own(paths) if checkout is None else _list_checkout(checkout)
    states = {}
    for file in files:
        try:
            state = file.stat(follow_symlinks=False)
        except OSError:  # removed meanwhile
            continue
        # No contents: this is done before and after each run, and a project may have thousands of
        # files.
        states[str(file)] = (state.st_size, state.st_mtime_ns)
    return states


def compare_scans(before: FileStates, after: FileStates) -> FileChanges:
    """Return the files that differ between two scans.

    Args:
        before: Files before a run.
        after: Files after it.
    """
    both = before.keys() & after.keys()
    return FileChanges(
        added=tuple(sorted(after.keys() - before.keys())),
        changed=tuple(sorted(path for path in both if before[path] != after[path])),
        removed=tuple(sorted(before.keys() - after.keys())),
    )


def _list_checkout(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder except git's own."""
    for name, folders, files in os.walk(folder):
        folders[:] = [inner for inner in folders if inner != ".git"]
        yield from (Path(name, file) for file in files)


def _list_own(paths: Iterable[str]) -> Iterator[Path]:
    """Yield the files below the requested folders, and next to the requested files."""
    for path in dict.fromkeys(text.partition("::")[0] for text in paths):
        if Path(path).is_dir():
            yield from walk_files(Path(path))
        else:
            yield from (file for file in Path(path).parent.iterdir() if file.is_file())
