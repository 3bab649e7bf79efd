"""Packages beside those of a cell: what a script needs, or a user's own package with its own."""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename

from conformance.cells.in_use import made_alone
from conformance.cells.layer import DIGITS, WHEELS, layer_of
from conformance.cells.masking import masked
from conformance.cells.uvtool import run_uv
from conformance.errors import UsageError
from conformance.files import disk_error, write_atomically
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.cells.layer import Layer
    from conformance.cells.lock import Lock

OVERLAYS: Final = "overlays"
_DONE: Final = ".done"
_DIST_INFO: Final = re.compile(r"(?P<name>[^-]+)-(?P<version>.+)\.dist-info")


def requirement(text: str) -> Requirement:
    """Return a requirement.

    Args:
        text: E.g. `optax>=0.2`.

    Raises:
        UsageError: If it is none, or holds a secret, which would be kept with what is run.
    """
    try:
        found = Requirement(text)
    except InvalidRequirement as error:
        said = str(error).splitlines()[0].lower()
        raise UsageError(
            masked(f"requirement {text!r}: {said}, expected e.g. 'optax>=0.2'")
        ) from None
    if found.url and _holds_secret(found.url):
        raise UsageError(
            f"{masked(text)}: holds a password or a token, which would be kept with the run; "
            "put it into a netrc file, or set UV_INDEX to an index that has the package"
        )
    return found


def _holds_secret(url: str) -> bool:
    """Say whether a URL has a password, or a token in the place of a user's name."""
    parts = urlsplit(url)
    token = parts.username and parts.scheme.rpartition("+")[2] in {"http", "https"}
    return bool(parts.password or token)


def wanted_requirement(text: str, cache: Path) -> str:
    """Return what is wanted as a requirement; a package in a folder is built as it is now.

    Args:
        text: A requirement, the folder of a package, or a wheel; what is returned is one, too,
            and stays as it is.
        cache: Cache folder; wheels are kept there by their content.

    Raises:
        UsageError: If it is none of them.
        UvError: If the package cannot be built.
        InfrastructureError: If the disk refuses.
    """
    return _of_path(Path(text).expanduser(), cache) if _is_path(text) else str(requirement(text))


def absolute_wanted(text: str) -> str:
    """Return what is wanted so that it means the same from any working directory.

    Args:
        text: As for `wanted_requirement`.
    """
    return str(Path(text).expanduser().absolute()) if _is_path(text) else text


def _is_path(text: str) -> bool:
    """Tell a path from a requirement: it ends like a wheel, or begins like a path."""
    wheel = text.endswith(".whl") and "@" not in text
    return wheel or text.startswith((".", "/", "~"))


def _of_path(path: Path, cache: Path) -> str:
    if path.suffix == ".whl":
        return _kept(path, cache)
    if not any((path / name).is_file() for name in ("pyproject.toml", "setup.py")):
        raise UsageError(f"{path}: has no pyproject.toml, expected the folder of a package")
    before = set(_left_by_builds(path))
    with temporary_folder("overlay") as scratch:
        try:
            # Else uv takes the first Python on PATH, and downloads the newest where there is none.
            where = ("--python", sys.executable, "--out-dir", scratch)
            run_uv(["build", "--wheel", *where, path.resolve()], cwd=scratch)
        finally:
            for left in set(_left_by_builds(path)) - before:
                shutil.rmtree(left, ignore_errors=True)
        (wheel,) = scratch.glob("*.whl")
        return _kept(wheel, cache)


def _left_by_builds(folder: Path) -> Iterator[Path]:
    """Yield the folders that setuptools leaves beside a package that it builds."""
    for pattern in ("build", "*.egg-info", "src/*.egg-info"):
        yield from folder.glob(pattern)


def _kept(wheel: Path, cache: Path) -> str:
    """Keep a wheel by its content, whenever it was built, and return the requirement for it."""
    try:
        name, *_ = parse_wheel_filename(wheel.name)
        with zipfile.ZipFile(wheel) as files:
            content = sorted((entry.filename, entry.CRC) for entry in files.infolist())
        digest = hashlib.sha256(repr(content).encode()).hexdigest()[:24]
        kept = cache / WHEELS / digest / wheel.name
        if not kept.exists():
            write_atomically(kept, wheel.read_bytes())
    except (OSError, InvalidWheelFilename, zipfile.BadZipFile) as error:
        raise UsageError(f"{wheel}: is no wheel: {error}") from None
    return str(requirement(f"{name} @ {kept.as_uri()}"))


def overlay(python: Path, lock: Lock, requirements: tuple[str, ...], cache: Path) -> Path | None:
    """Return a folder with packages that go with those of a cell, made if it is not there.

    It holds what the cell itself lacks, as a lock of its own says: see `layer_of`.

    Args:
        python: Interpreter of the cell.
        lock: Its lock. What it has stays, but for what is wanted by name.
        requirements: What is wanted.
        cache: Cache folder.

    Returns:
        The folder, for PYTHONPATH; None where nothing is wanted.

    Raises:
        UvError: If they cannot be had together with what is there.
        InfrastructureError: If the disk refuses.
    """
    if not requirements:
        return None
    layer = layer_of(python, lock, requirements, cache)
    where = hashlib.sha256(str(python).encode()).hexdigest()[:8]
    folder = cache / OVERLAYS / f"{layer.hash[:DIGITS]}-{where}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with made_alone(folder) as held:
            if not (folder / _DONE).exists():
                _make(folder, python, layer, cache, held)
    except OSError as error:
        raise disk_error(folder, error) from error
    return folder


def layer_hash(folder: Path) -> str:
    """Return the hash of the lock that such a folder was made from, as much as its name has.

    Args:
        folder: The folder.
    """
    return folder.name.partition("-")[0]


def _make(folder: Path, python: Path, layer: Layer, cache: Path, held: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    hashed, local = layer.parts(cache)
    for text, more in ((hashed, ["--require-hashes"]), (local, [])):
        if not text:
            continue
        with temporary_folder("overlay") as scratch:
            file = Path(scratch, "layer.txt")
            file.write_text(text, encoding="utf-8")
            where = ["--python", str(python), "--target", str(folder)]
            how = ["--requirements", str(file), "--no-deps", "--only-binary", ":all:", *more]
            run_uv(["pip", "install", *where, *how], cwd=scratch, holds=(held,))
    (folder / _DONE).touch()


def installed_in(folder: Path) -> Mapping[str, str]:
    """Return what is installed in such a folder, version by normalised name.

    Args:
        folder: The folder.
    """
    found = (_DIST_INFO.fullmatch(path.name) for path in folder.glob("*.dist-info"))
    return {str(canonicalize_name(m["name"])): m["version"] for m in found if m is not None}
