"""The versions of libraries in the package index, and the tests in their source distributions."""

from __future__ import annotations

import tarfile
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import requests

from conformance.cells.environment_locks import provide_folder
from conformance.cells.package_index import download_sdist, open_index, read_wheels
from conformance.cells.release_index import find_index
from conformance.ecosystem.versions import PublishedVersion
from conformance.errors import InfrastructureError
from conformance.files import write_atomically
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pypi_simple import PyPISimple

    from conformance.ecosystem.library import Library

FOLDER: Final = "ecosystem"
"""Folder of the cache with the tests of libraries."""
SETTINGS: Final = frozenset({"conftest.py", "pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini"})
"""Files at the top of a source distribution that pytest reads."""
_DONE: Final = ".done"
_ONLY_IMPORT: Final = """

def test_import():
    pass
"""
"""The program of a library that has tests of its own alone."""


@dataclass(frozen=True)
class LibrarySources:
    """Looks up versions, and provides folders of tests; for several threads.

    Attributes:
        cache: Cache folder.
    """

    cache: Path
    _published: dict[str, tuple[PublishedVersion, ...]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find_versions(self, name: str) -> tuple[PublishedVersion, ...]:
        """Return the versions of a library, none if the index does not know it.

        Args:
            name: Name of the library.

        Raises:
            InfrastructureError: If the index cannot be reached.
        """
        with self._lock:
            if name not in self._published:
                with open_index(find_index()) as client:
                    self._published[name] = tuple(_read_versions(client, name))
            return self._published[name]

    def write_program(self, library: Library) -> Path:
        """Return the file with the tests of ours of a library, which imports its modules first.

        Args:
            library: The library.

        Raises:
            InfrastructureError: If the disk refuses.
        """
        # The name of the module is not that of the library, which it would hide.
        name = f"test_{library.name.replace('-', '_')}.py"
        file = self.cache / FOLDER / "programs" / library.hash / name
        if not file.exists():
            text = f"import {', '.join(library.imports)}\n{library.program or _ONLY_IMPORT}"
            write_atomically(file, text.encode())
        return file

    def fetch_tests(self, library: Library, version: str) -> Path | None:
        """Return the folder with a library's own tests, downloaded if it is missing.

        Args:
            library: A library with tests.
            version: Version of the library.

        Returns:
            Folder of the source distribution; None if the version has none, or none with tests.

        Raises:
            InfrastructureError: If the index cannot be reached, the file is damaged, or the disk
                refuses.
        """
        assert library.tests is not None  # noqa: S101 - for mypy
        folder = self.cache / FOLDER / f"{library.name}-{version}"
        with provide_folder(folder):
            if not (folder / _DONE).exists():
                with open_index(find_index()) as client, temporary_folder("sdist") as scratch:
                    file = download_sdist(client, library.name, version, scratch)
                    folder.mkdir(exist_ok=True)
                    if file is not None:
                        _extract(file, folder, PurePosixPath(library.tests.path))
                (folder / _DONE).touch()
        return folder if (folder / library.tests.path).exists() else None


def _read_versions(client: PyPISimple, name: str) -> Iterator[PublishedVersion]:
    try:
        found = read_wheels(client, name, prereleases=True)
    except requests.HTTPError as error:
        # Any other status is a failure of the index, which `open_index` reports.
        if error.response is None or error.response.status_code != HTTPStatus.NOT_FOUND:
            raise
        return
    for version, wheels in found.items():
        admitted = [wheel for wheel in wheels if not wheel.package.is_yanked]
        if admitted:
            yield PublishedVersion(
                version=version, uploaded=min(wheel.uploaded for wheel in admitted),
                requires_python=admitted[0].package.requires_python or "",
            )  # fmt: skip


def _extract(file: Path, folder: Path, path: PurePosixPath) -> None:
    """Extract the tests of a source distribution, and the settings of pytest.

    Nothing else: the installed library is tested, not the one in the source distribution.

    Raises:
        InfrastructureError: If the file is no archive of tar, or not safe.
    """
    try:
        with tarfile.open(file) as archive:
            for member in archive.getmembers():
                # All is below a folder NAME-VERSION.
                inner = PurePosixPath(*PurePosixPath(member.name).parts[1:])
                if inner.is_relative_to(path) or str(inner) in SETTINGS:
                    archive.extract(member.replace(name=str(inner)), folder, filter="data")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InfrastructureError(f"{file.name}: cannot be extracted: {error}") from None
