"""Packages beside those of a cell: what a script needs that no case does."""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import tomllib
from filelock import FileLock
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from conformance.cells.uvtool import run_uv
from conformance.errors import UsageError
from conformance.files import disk_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.cells.lock import Lock

OVERLAYS: Final = "overlays"
_DONE: Final = ".done"
_HEADER: Final = re.compile(r"(?m)^# /// script\s*$\n((?:^#(?:| .*)$\n)*?)^# ///\s*$")
"""A script's own requirements, PEP 723."""


def requirements_of(script: str, wanted: Iterable[str], given: Iterable[str]) -> tuple[str, ...]:
    """Return what must be installed beside the packages of a cell.

    Args:
        script: Text of a script, whose own header counts too; what it says of packages that
            the cell has is what is searched, and does not count.
        wanted: Requirements that the user names.
        given: Packages of the cell.

    Raises:
        UsageError: If one is no requirement.
    """
    has = {canonicalize_name(name) for name in given}
    own = [text for text in _declared(script) if canonicalize_name(_read(text).name) not in has]
    return tuple(sorted({str(_read(text)) for text in (*own, *wanted)}))


def _declared(script: str) -> list[str]:
    match = _HEADER.search(script)
    if match is None:
        return []
    lines = (line.removeprefix("#").removeprefix(" ") for line in match[1].splitlines())
    try:
        said = tomllib.loads("\n".join(lines)).get("dependencies", [])
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"header of the script: expected TOML: {str(error).lower()}") from None
    return [text for text in said if isinstance(text, str)] if isinstance(said, list) else []


def _read(text: str) -> Requirement:
    try:
        return Requirement(text)
    except InvalidRequirement as error:
        said = str(error).splitlines()[0].lower()
        raise UsageError(f"requirement {text!r}: {said}, expected e.g. 'optax>=0.2'") from None


def overlay(python: Path, lock: Lock, requirements: tuple[str, ...], cache: Path) -> Path | None:
    """Return a folder with packages that go with those of a cell, made if it is not there.

    Args:
        python: Interpreter of the cell.
        lock: Its lock, which says what may not change.
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
    facts = "\0".join((str(python), lock.hash, *requirements))
    folder = cache / OVERLAYS / hashlib.sha256(facts.encode()).hexdigest()[:24]
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not (folder / _DONE).exists():
                _make(folder, python, lock, requirements)
    except OSError as error:
        raise disk_error(folder, error) from error
    return folder


def _make(folder: Path, python: Path, lock: Lock, requirements: tuple[str, ...]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        constraints = Path(scratch) / "constraints.txt"
        constraints.write_text("".join(f"{n}=={v}\n" for n, v in lock.pins.items()))
        where = ["--python", str(python), "--target", str(folder)]
        how = ["--constraint", str(constraints), "--only-binary", ":all:"]
        # The cell has its nightlies, and no usual index does.
        given = Path(scratch) / "given.txt"
        given.write_text("\n".join(lock.nightlies))
        how += ["--excludes", str(given)]
        run_uv(["pip", "install", *where, *how, *requirements], cwd=Path(scratch))
    (folder / _DONE).touch()
