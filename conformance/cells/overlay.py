"""Packages beside those of a cell: what a script needs, or a user's own package with its own."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.utils import canonicalize_name

from conformance.cells.environment_locks import lock_creation
from conformance.cells.overlay_lock import DIGITS, find_overlay_lock
from conformance.cells.uvtool import run_uv
from conformance.files import disk_error
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.cells.lock import Lock
    from conformance.cells.overlay_lock import OverlayLock

OVERLAYS: Final = "overlays"
_DONE: Final = ".done"
_DIST_INFO: Final = re.compile(r"(?P<name>[^-]+)-(?P<version>.+)\.dist-info")


def overlay(python: Path, lock: Lock, requirements: tuple[str, ...], cache: Path) -> Path | None:
    """Return a folder with packages that go with those of a cell, made if it is not there.

    It holds what the cell itself lacks, as a lock of its own says: see `find_overlay_lock`.

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
    layer = find_overlay_lock(python, lock, requirements, cache)
    where = hashlib.sha256(str(python).encode()).hexdigest()[:8]
    folder = cache / OVERLAYS / f"{layer.hash[:DIGITS]}-{where}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock_creation(folder) as held:
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


def _make(folder: Path, python: Path, layer: OverlayLock, cache: Path, held: int) -> None:
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
