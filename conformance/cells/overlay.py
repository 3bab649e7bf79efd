"""Packages in addition to those of a cell: locked with hashes once, and installed into a folder.

They are what a script needs, or a package of the user's with its own dependencies.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from conformance.cells.environment_locks import lock_creation
from conformance.cells.lock import get_host
from conformance.cells.uvtool import run_uv
from conformance.files import disk_error, write_atomically
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.cells.lock import Lock


LOCKS: Final = "layers"
"""Folder of the cache that keeps these locks."""
WHEELS: Final = "wheels"
"""Folder of the cache that keeps wheels by their content."""
MAGIC: Final = "# jax-conformance layer 1"
SEARCHED: Final = frozenset({"jax", "jaxlib"})
"""Packages under test: an overlay must not change their version."""
DIGITS: Final = 24
_ENTRY: Final = re.compile(
    r"^(?P<name>[A-Za-z0-9][\w.-]*)(?P<what>(?:==| @ )[^\n]*(?:\n +[^\n]*)*)", re.MULTILINE
)
_PINNED: Final = re.compile(r"==([^\s;\\]+)")
_HASH: Final = re.compile(r"\s*\\?\s*--hash=\S+")
OVERLAYS: Final = "overlays"
_DONE: Final = ".done"
_DIST_INFO: Final = re.compile(r"(?P<name>[^-]+)-(?P<version>.+)\.dist-info")


@dataclass(frozen=True)
class OverlayLock:
    """The lock of an overlay: packages that the cell itself lacks.

    Attributes:
        text: Requirements with hashes; a wheel of the cache by its place there, which is its
            content, so that the text is the same on another machine.
    """

    text: str

    @cached_property
    def hash(self) -> str:
        """SHA-256 of what it holds, however that was asked for, in hexadecimal."""
        held = "".join(entry[0] for entry in _ENTRY.finditer(self.text))
        return hashlib.sha256(held.encode()).hexdigest()

    @property
    def versions(self) -> Mapping[str, str]:
        """Version of each package that an index has, by name."""
        pinned = (
            (entry["name"], _PINNED.match(entry["what"])) for entry in _ENTRY.finditer(self.text)
        )
        return {name: found[1] for name, found in pinned if found is not None}

    def parts(self, cache: Path) -> tuple[str, str]:
        """Return the requirements that have hashes, and those of wheels in the cache.

        Args:
            cache: Cache folder.
        """
        hashed, local = [], []
        for line in _ENTRY.finditer(self.text):
            text = line[0]
            name, sign, place = text.partition(f" @ {WHEELS}/")
            if sign:
                local.append(f"{name} @ {(cache / WHEELS / place).as_uri()}")
            else:
                hashed.append(text)
        return "".join(f"{text}\n" for text in hashed), "".join(f"{text}\n" for text in local)


def find_overlay_lock(
    python: Path, lock: Lock, requirements: Sequence[str], cache: Path
) -> OverlayLock:
    """Return the lock of the additional packages of a cell, resolved if it is not cached.

    Args:
        python: Interpreter of the cell.
        lock: The lock of the cell. Only required packages may change their version.
        requirements: Requirements of the additional packages.
        cache: Cache folder.

    Raises:
        NoSolutionError: If the requirements conflict with the packages of the cell.
        UvError: If the index does not answer.
        InfrastructureError: If the disk refuses.
    """
    wanted = [_portable(text, cache) for text in requirements]
    facts = "\0".join((MAGIC, lock.hash, get_host(), *wanted))
    file = cache / LOCKS / f"{hashlib.sha256(facts.encode()).hexdigest()[:DIGITS]}.txt"
    try:
        text = file.read_text(encoding="utf-8")
        if text.startswith(MAGIC):
            return OverlayLock(text)
    except (OSError, UnicodeDecodeError):
        pass
    found = _resolve(python, lock, requirements, cache)
    write_atomically(file, found.text.encode())
    return found


def _resolve(python: Path, lock: Lock, requirements: Sequence[str], cache: Path) -> OverlayLock:
    named = {str(canonicalize_name(Requirement(text).name)) for text in requirements}
    kept = {n: v for n, v in lock.pins.items() if n not in named or n in SEARCHED}
    # The cell has its nightlies and its development builds, and no usual index does.
    given = {*lock.nightlies, *(name for name, version in kept.items() if _is_own(version))}
    with temporary_folder("layer") as scratch:
        constraints, excludes = Path(scratch, "constraints.txt"), Path(scratch, "given.txt")
        pins = (f"{name}=={version}\n" for name, version in kept.items() if name not in given)
        constraints.write_text("".join(pins), encoding="utf-8")
        excludes.write_text("\n".join(sorted(given)), encoding="utf-8")
        how = ["--constraint", str(constraints), "--excludes", str(excludes)]
        how += ["--only-binary", ":all:", "--generate-hashes", "--no-header", "--no-annotate"]
        said = run_uv(
            ["pip", "compile", "-", "--python", python, *how],
            cwd=scratch, stdin="\n".join(requirements) + "\n",
        )  # fmt: skip
    asked = " ".join(_portable(text, cache) for text in requirements)
    return OverlayLock(f"{MAGIC}\n# requires: {asked}\n{_lacking(said, lock.pins, cache)}")


def _lacking(said: str, pins: Mapping[str, str], cache: Path) -> str:
    """Return what the resolver found, without what the cell has.

    Args:
        said: Requirements with hashes, as uv writes them.
        pins: What the cell has, version by normalised name.
        cache: Cache folder.
    """
    lines = []
    for entry in _ENTRY.finditer(said):
        name = str(canonicalize_name(entry["name"]))
        pinned = _PINNED.match(entry["what"])
        if pinned is not None and pins.get(name) == pinned[1]:
            continue
        text = f"{name}{entry['what'].rstrip()}"
        # The build time of a wheel changes its hash, not its content.
        plain = _HASH.sub("", text)
        portable = _portable(plain, cache)
        lines.append(text if portable == plain else portable)
    return "".join(f"{line}\n" for line in sorted(lines))


def _portable(text: str, cache: Path) -> str:
    """Return a requirement without the place of the cache, where it is a wheel of the cache."""
    name, sign, url = text.partition(" @ ")
    if not sign or not url.startswith("file:"):
        return text
    path = Path(unquote(urlsplit(url).path))
    folder = cache / WHEELS
    return f"{name} @ {WHEELS}/{path.relative_to(folder)}" if path.is_relative_to(folder) else text


def _is_own(version: str) -> bool:
    """Say whether a version is of a build that no usual index has."""
    try:
        parsed = Version(version)
    except ValueError:
        return False
    return parsed.is_devrelease or parsed.local is not None


def find_overlay(
    python: Path, lock: Lock, requirements: tuple[str, ...], cache: Path
) -> Path | None:
    """Return the folder of the additional packages of a cell, created if necessary.

    It has the packages that the cell lacks, from a lock of its own: see `find_overlay_lock`.

    Args:
        python: Interpreter of the cell.
        lock: The lock of the cell. Only required packages may change their version.
        requirements: Requirements of the additional packages.
        cache: Cache folder.

    Returns:
        The folder, for PYTHONPATH; None without requirements.

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


def read_installed_versions(folder: Path) -> Mapping[str, str]:
    """Return what is installed in such a folder, version by normalised name.

    Args:
        folder: The folder.
    """
    found = (_DIST_INFO.fullmatch(path.name) for path in folder.glob("*.dist-info"))
    return {str(canonicalize_name(m["name"])): m["version"] for m in found if m is not None}
