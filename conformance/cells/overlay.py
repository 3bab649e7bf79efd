"""Overlays: packages in addition to those of a cell, locked with hashes, in a separate folder.

An overlay has the requirements of a script, or a package of the user with its dependencies.
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


# Overlays were called layers: renaming the folder and the magic would discard every cached lock.
LOCKS: Final = "layers"
"""Folder of the cache with the locks of overlays."""
WHEELS: Final = "wheels"
"""Folder of the cache with wheels that were built from source, by their content."""
MAGIC: Final = "# jax-conformance layer 1"
UNDER_TEST: Final = frozenset({"jax", "jaxlib"})
"""Packages under test: an overlay must not change their versions."""
DIGITS: Final = 24
"""Hexadecimal digits of a hash in the name of a file or a folder."""
_ENTRY: Final = re.compile(
    r"^(?P<name>[A-Za-z0-9][\w.-]*)(?P<rest>(?:==| @ )[^\n]*(?:\n +[^\n]*)*)", re.MULTILINE
)
_PINNED: Final = re.compile(r"==([^\s;\\]+)")
_HASH: Final = re.compile(r"\s*\\?\s*--hash=\S+")
OVERLAYS: Final = "overlays"
"""Folder of the cache with the installed overlays."""
_DONE: Final = ".done"
_DIST_INFO: Final = re.compile(r"(?P<name>[^-]+)-(?P<version>.+)\.dist-info")


@dataclass(frozen=True)
class OverlayLock:
    """The lock of an overlay: packages that the cell itself lacks.

    Attributes:
        text: Requirements with hashes. A wheel of the cache is a path relative to the cache, which
            contains a hash of its content, so that the text is the same on every machine.
    """

    text: str

    @cached_property
    def hash(self) -> str:
        """SHA-256 of its entries without the comment lines, in hexadecimal."""
        # The same packages requested in other words share one folder.
        entries = "".join(entry[0] for entry in _ENTRY.finditer(self.text))
        return hashlib.sha256(entries.encode()).hexdigest()

    @property
    def versions(self) -> Mapping[str, str]:
        """Version of each package from an index, by name."""
        pinned = (
            (entry["name"], _PINNED.match(entry["rest"])) for entry in _ENTRY.finditer(self.text)
        )
        return {name: found[1] for name, found in pinned if found is not None}

    def split_local(self, cache: Path) -> tuple[str, str]:
        """Return the requirements with hashes, and those of wheels in the cache.

        Args:
            cache: Cache folder.
        """
        hashed, local = [], []
        for line in _ENTRY.finditer(self.text):
            text = line[0]
            name, is_local, path = text.partition(f" @ {WHEELS}/")
            if is_local:
                local.append(f"{name} @ {(cache / WHEELS / path).as_uri()}")
            else:
                hashed.append(text)
        return "".join(f"{text}\n" for text in hashed), "".join(f"{text}\n" for text in local)


def find_overlay_lock(
    python: Path, lock: Lock, requirements: Sequence[str], cache: Path
) -> OverlayLock:
    """Return the lock of the additional packages of a cell, resolved if it is not cached.

    Args:
        python: Interpreter of the cell.
        lock: Lock of the cell. Only required packages may change their version.
        requirements: Requirements of the additional packages.
        cache: Cache folder.

    Raises:
        NoSolutionError: If the requirements conflict with the packages of the cell.
        UvError: If the index does not answer.
        InfrastructureError: If the disk fails.
    """
    wanted = [_make_portable(text, cache) for text in requirements]
    # With the host: its wheels, and so the hashes, differ from those of others.
    facts = "\0".join((MAGIC, lock.hash, get_host(), *wanted))
    file = cache / LOCKS / f"{hashlib.sha256(facts.encode()).hexdigest()[:DIGITS]}.txt"
    try:
        text = file.read_text(encoding="utf-8")
        if text.startswith(MAGIC):
            return OverlayLock(text)
    except (OSError, UnicodeDecodeError):
        pass  # missing or damaged: it is resolved again
    found = _resolve(python, lock, requirements, cache)
    write_atomically(file, found.text.encode())
    return found


def _resolve(python: Path, lock: Lock, requirements: Sequence[str], cache: Path) -> OverlayLock:
    required = {str(canonicalize_name(Requirement(text).name)) for text in requirements}
    # Constraints, so that no package of the cell changes its version as a side effect.
    fixed = {n: v for n, v in lock.pins.items() if n not in required or n in UNDER_TEST}
    # The default index has no nightlies and no development builds: the resolver would fail to find
    # those that the cell already has.
    excluded = {*lock.nightlies, *filter(lambda name: _is_development_build(fixed[name]), fixed)}
    with temporary_folder("layer") as scratch:
        constraints, excludes = Path(scratch, "constraints.txt"), Path(scratch, "excludes.txt")
        pins = (f"{name}=={version}\n" for name, version in fixed.items() if name not in excluded)
        constraints.write_text("".join(pins), encoding="utf-8")
        excludes.write_text("\n".join(sorted(excluded)), encoding="utf-8")
        how = ["--constraint", str(constraints), "--excludes", str(excludes)]
        how += ["--only-binary", ":all:", "--generate-hashes", "--no-header", "--no-annotate"]
        output = run_uv(
            # For this host only: an overlay is never committed.
            ["pip", "compile", "-", "--python", python, *how],
            cwd=scratch, stdin="\n".join(requirements) + "\n",
        )  # fmt: skip
    comment = " ".join(_make_portable(text, cache) for text in requirements)
    return OverlayLock(f"{MAGIC}\n# requires: {comment}\n{_subtract(output, lock.pins, cache)}")


def _subtract(output: str, pins: Mapping[str, str], cache: Path) -> str:
    """Return the resolved requirements without the packages of the cell.

    Args:
        output: Requirements with hashes, as written by uv.
        pins: Packages of the cell, version by normalised name.
        cache: Cache folder.
    """
    lines = []
    for entry in _ENTRY.finditer(output):
        name = str(canonicalize_name(entry["name"]))
        pinned = _PINNED.match(entry["rest"])
        if pinned is not None and pins.get(name) == pinned[1]:
            continue
        text = f"{name}{entry['rest'].rstrip()}"
        # The hash of a built wheel depends on the time of the build: it is not portable.
        plain = _HASH.sub("", text)
        portable = _make_portable(plain, cache)
        lines.append(text if portable == plain else portable)
    return "".join(f"{line}\n" for line in sorted(lines))


def _make_portable(text: str, cache: Path) -> str:
    """Return a requirement with a path relative to the cache if it is a wheel of the cache."""
    name, _, url = text.partition(" @ ")
    if not url.startswith("file:"):
        return text
    path = Path(unquote(urlsplit(url).path))
    folder = cache / WHEELS
    return f"{name} @ {WHEELS}/{path.relative_to(folder)}" if path.is_relative_to(folder) else text


def _is_development_build(version: str) -> bool:
    """Say whether a version is of a build that is not on the default index."""
    try:
        parsed = Version(version)
    except ValueError:
        return False
    return parsed.is_devrelease or parsed.local is not None


def find_overlay(
    python: Path, lock: Lock, requirements: tuple[str, ...], cache: Path
) -> Path | None:
    """Return the folder with the additional packages of a cell, created if missing.

    The folder has the packages that the cell lacks, see `find_overlay_lock`.

    Args:
        python: Interpreter of the cell.
        lock: Lock of the cell. Only required packages may change their version.
        requirements: Requirements of the additional packages.
        cache: Cache folder.

    Returns:
        The folder, for PYTHONPATH; None without requirements.

    Raises:
        UvError: If the requirements conflict with the packages of the cell.
        InfrastructureError: If the disk fails.
    """
    if not requirements:
        return None
    overlay = find_overlay_lock(python, lock, requirements, cache)
    # Another interpreter may need other wheels of the same lock.
    python_hash = hashlib.sha256(str(python).encode()).hexdigest()[:8]
    folder = cache / OVERLAYS / f"{overlay.hash[:DIGITS]}-{python_hash}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with lock_creation(folder) as descriptor:
            # The mark is written last: a folder without it is of an installation that was killed.
            if not (folder / _DONE).exists():
                _install(folder, python, overlay, cache, descriptor)
    except OSError as error:
        raise disk_error(folder, error) from error
    return folder


def get_overlay_hash(folder: Path) -> str:
    """Return the shortened hash of an overlay's lock.

    Args:
        folder: Folder of the overlay.
    """
    return folder.name.partition("-")[0]


def _install(
    folder: Path, python: Path, overlay: OverlayLock, cache: Path, descriptor: int
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    hashed, local = overlay.split_local(cache)
    # uv accepts no requirement without a hash in the mode that requires hashes.
    for text, more in ((hashed, ["--require-hashes"]), (local, [])):
        if not text:
            continue
        with temporary_folder("overlay") as scratch:
            file = Path(scratch, "layer.txt")
            file.write_text(text, encoding="utf-8")
            where = ["--python", str(python), "--target", str(folder)]
            how = ["--requirements", str(file), "--no-deps", "--only-binary", ":all:", *more]
            run_uv(["pip", "install", *where, *how], cwd=scratch, pass_fds=(descriptor,))
    (folder / _DONE).touch()


def read_installed_versions(folder: Path) -> Mapping[str, str]:
    """Return the versions of the packages in an overlay, by normalised name.

    Args:
        folder: Folder of the overlay.
    """
    found = (_DIST_INFO.fullmatch(path.name) for path in folder.glob("*.dist-info"))
    return {str(canonicalize_name(m["name"])): m["version"] for m in found if m is not None}
