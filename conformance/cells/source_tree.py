"""Python sources of a package at a commit, as folders for PYTHONPATH.

A commit changes few files: a new tree links the others, with their bytecode, from an earlier tree.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
import time
from dataclasses import dataclass, field
from importlib.metadata import Distribution
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.cells.environment_locks import provide_folder
from conformance.errors import UsageError
from conformance.files import MALFORMED, write_atomically
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.cells.repository import Repository

FOLDER: Final = "sources"
"""Folder of the cache with the trees, each below the name of its package."""
DONE: Final = ".done.json"
DIGITS: Final = 16
MOST: Final = 100
"""Trees of a package that are kept; those unused for longest are removed first."""
IN_USE: Final = 3600.0
"""Seconds after the last use of a tree in which it is never removed."""
_BYTECODE: Final = "__pycache__"
_BINARY: Final = (".so", ".pyd", ".dylib")
_RELEASE_VERSION: Final = re.compile(r"^_release_version\b[^\n=]*= *None$", re.MULTILINE)
"""The line of jax's `version.py` that its build replaces."""
_BUILT_VERSION: Final = re.compile(r"^_release_version\b[^\n=]*=[^\n]*$", re.MULTILINE)
_MINIMUM: Final = re.compile(r"^_minimum_jaxlib_version *=[^\n]*$", re.MULTILINE)


class _Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The mark of a complete tree.

    Attributes:
        files: Hash of the content of each file from the repository, by path within the
            folder of the module.
    """

    files: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePackage:
    """A package whose sources are taken from a repository.

    Attributes:
        name: Name of the package on the index, normalised.
        module: Name of the folder to import.
        prefix: Folder of the repository that contains the module's folder: empty or `src`.
        generated: Files of the installed package that the repository lacks, by path below the
            folder of the module's folder, e.g. `mylib/_version.py`.
    """

    name: str
    module: str
    prefix: str = ""
    generated: Mapping[str, Path] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """Folder of the module in the repository."""
        return str(PurePosixPath(self.prefix, self.module))


def find_source_package(
    repository: Repository, commit: str, name: str, site_packages: Path | None
) -> SourcePackage:
    """Return a package of a repository.

    Args:
        repository: The repository.
        commit: A commit that has the package.
        name: Name of the package on the index, normalised.
        site_packages: Folder in which a release of about that commit is installed, None if it is
            not installed.

    Raises:
        UsageError: If the package has compiled modules, or the repository lacks its folder.
    """
    files = _list_installed_files(site_packages, name) if site_packages is not None else []
    if binary := next((file for file in files if file.endswith(_BINARY)), None):
        raise UsageError(f"{name}: has compiled modules ({binary}), expected a pure Python package")
    packages = {file.partition("/")[0] for file in files if file.endswith("/__init__.py")}
    guess = name.replace("-", "_")
    modules = sorted(packages, key=lambda module: (module != guess, module)) or [guess]
    for module in modules:
        for prefix in ("", "src"):
            folder = str(PurePosixPath(prefix, module))
            if repository.has_folder(commit, folder):
                known = {f"{module}/{path}" for path in repository.list_files(commit, folder)}
                generated = {
                    file: site_packages / file
                    for file in files
                    if site_packages is not None
                    and file.startswith(f"{module}/")
                    and file not in known
                    and _BYTECODE not in file
                }
                return SourcePackage(name=name, module=module, prefix=prefix, generated=generated)
    expected = " or ".join(f"{module}/ or src/{module}/" for module in modules)
    raise UsageError(f"{repository.url}: has no {expected} at {commit[:12]}")


def _list_installed_files(site_packages: Path, name: str) -> list[str]:
    """Return the files of an installed package, relative to the folder of packages."""
    found = next(iter(Distribution.discover(name=name, path=[str(site_packages)])), None)
    return [] if found is None else [str(file) for file in found.files or ()]


def provide_sources(
    repository: Repository, commit: str, package: SourcePackage, version: str, cache: Path
) -> Path:
    """Return the folder with the sources of a package at a commit, created if it is missing.

    The folder has the metadata of the package, too, so that it is found under the given version.

    Args:
        repository: The repository.
        commit: Whole hash of the commit.
        package: The package.
        version: Version under which the package is found.
        cache: Cache folder.

    Returns:
        The folder, for PYTHONPATH.

    Raises:
        InfrastructureError: If git fails or the disk refuses.
    """
    # The generated files are of an installed release, so they are part of the identity.
    facts = "\0".join((commit, version, package.prefix, *map(str, package.generated.values())))
    folder = cache / FOLDER / package.name / hashlib.sha256(facts.encode()).hexdigest()[:DIGITS]
    with provide_folder(folder):
        if _read_manifest(folder) is None:
            _remove_unused(folder.parent)
            _create(folder, repository, commit, package, version)
        os.utime(folder)  # the last use, by which trees are kept
    return folder


def provide_installed_sources(installed: Path, version: str, cache: Path) -> Path:
    """Return a folder with an installed jax that accepts any jaxlib up to a version.

    jax refuses a jaxlib that is older than its minimum, or newer than itself, although most of its
    code works with the jaxlib of a neighbouring release.

    Args:
        installed: Folder of the installed package.
        version: Version under which it is found.
        cache: Cache folder.

    Returns:
        The folder, for PYTHONPATH.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    package = SourcePackage(name=installed.name, module=installed.name)
    facts = f"{installed}\0{version}"
    digest = hashlib.sha256(facts.encode()).hexdigest()[:DIGITS]
    folder = cache / FOLDER / f"{installed.name}-installed" / digest
    with provide_folder(folder):
        if _read_manifest(folder) is None:
            shutil.rmtree(folder, ignore_errors=True)
            # Links, and with them the bytecode stays valid.
            shutil.copytree(installed, folder / installed.name, copy_function=_link_or_copy)
            _write_version(folder, package, version, any_jaxlib=True)
            write_atomically(folder / DONE, msgspec.json.encode(_Manifest(files={})))
    return folder


def _link_or_copy(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
    return target


def _remove_unused(trees: Path) -> None:
    """Remove the trees of a package that no search has used for long, if there are many."""
    used = sorted((tree.stat().st_mtime, tree) for tree in trees.iterdir() if tree.is_dir())
    for when, tree in used[:-MOST]:
        if time.time() - when > IN_USE:
            # The mark goes first: a tree that is half removed is never used.
            (tree / DONE).unlink(missing_ok=True)
            shutil.rmtree(tree, ignore_errors=True)
            tree.with_name(f"{tree.name}.lock").unlink(missing_ok=True)


def _create(
    folder: Path, repository: Repository, commit: str, package: SourcePackage, version: str
) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # of a process that was killed
    folder.mkdir()
    wanted = repository.list_files(commit, package.folder)
    own = folder / package.module
    own.mkdir()
    linked = _link_files(folder, package.module, wanted)
    left = {path: content for path, content in wanted.items() if path not in linked}
    if left:
        with temporary_folder("sources") as scratch:
            archive = scratch / "files.tar"
            repository.export(commit, package.folder, left, archive)
            with tarfile.open(archive) as tar:
                # The filter refuses names and links that lead out of the folder.
                tar.extractall(own, filter="data")
    for path, source in package.generated.items():
        target = folder / path
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
    unshared = _write_version(folder, package, version)
    files = {path: content for path, content in wanted.items() if path not in unshared}
    # Written last: a tree without it is of a process that was killed.
    write_atomically(folder / DONE, msgspec.json.encode(_Manifest(files=files)))


def _write_version(
    folder: Path, package: SourcePackage, version: str, *, any_jaxlib: bool = False
) -> set[str]:
    """Write the version of the package; return the files of the module that were changed."""
    metadata = folder / f"{package.name.replace('-', '_')}-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    text = f"Metadata-Version: 2.1\nName: {package.name}\nVersion: {version}\n"
    metadata.write_text(text, encoding="utf-8")
    file = folder / package.module / "version.py"
    if not file.is_file():
        return set()
    old = file.read_text(encoding="utf-8")
    # Without it jax asks git for a version each time it is imported, and finds that of any
    # repository around the cache.
    new = _RELEASE_VERSION.sub(f"_release_version = {version!r}", old, count=1)
    if any_jaxlib:
        new = _BUILT_VERSION.sub(f"_release_version = {version!r}", new, count=1)
        new = _MINIMUM.sub('_minimum_jaxlib_version = "0"', new, count=1)
    if new == old:
        return set()
    # Removed first: the file may be a link to that of another tree.
    file.unlink()
    file.write_text(new, encoding="utf-8")
    return {file.name}


def _link_files(folder: Path, module: str, wanted: Mapping[str, str]) -> set[str]:
    """Link the files of a module that the latest tree of the package has; return their paths."""
    lender = _find_lender(folder)
    if lender is None:
        return set()
    source, own = lender[0] / module, folder / module
    linked: set[str] = set()
    made = {own}
    for path, content in wanted.items():
        if lender[1].files.get(path) != content:
            continue
        target = own / path
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        try:
            # Python replaces bytecode, and git files, instead of changing them.
            target.hardlink_to(source / path)
        except OSError:  # removed meanwhile, or a file system without links
            continue
        linked.add(path)
    _link_bytecode(source, own, linked)
    return linked


def _link_bytecode(source: Path, folder: Path, linked: Iterable[str]) -> None:
    """Link the bytecode of linked files: it names the time and size of its source."""
    places: dict[Path, set[str]] = {}
    for path in linked:
        places.setdefault(Path(path).parent, set()).add(Path(path).stem)
    for place, stems in places.items():
        lender, own = source / place / _BYTECODE, folder / place / _BYTECODE
        if not lender.is_dir():  # nothing of the folder was imported
            continue
        own.mkdir()
        for file in lender.iterdir():
            if file.name.partition(".")[0] in stems:
                (own / file.name).hardlink_to(file)


def _find_lender(folder: Path) -> tuple[Path, _Manifest] | None:
    """Return the complete tree of the package that was used last, with its files."""
    trees = [path for path in folder.parent.iterdir() if path.is_dir() and path != folder]
    for tree in sorted(trees, key=lambda path: path.stat().st_mtime, reverse=True):
        if (manifest := _read_manifest(tree)) is not None:
            return tree, manifest
    return None


def _read_manifest(folder: Path) -> _Manifest | None:
    try:
        return msgspec.json.decode((folder / DONE).read_bytes(), type=_Manifest)
    except (OSError, *MALFORMED):
        return None
