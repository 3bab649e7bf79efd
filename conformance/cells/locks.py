"""Finding the lock of a cell: committed, cached, or resolved with uv as of the release's date."""

from __future__ import annotations

import re
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.cells.inspection import inspect_path_environment
from conformance.cells.lock import MAGIC, Lock, read_lock, store_lock
from conformance.cells.pylock import Pins, parse_pylock
from conformance.cells.uvtool import NoSolutionError, run_uv
from conformance.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.cells.cell import Cell
    from conformance.cells.releases import Releases

# The first one decides the versions, so a lock comes out the same wherever it is made.
HOSTS = {
    "linux-x86_64": "x86_64-unknown-linux-gnu",
    "linux-aarch64": "aarch64-unknown-linux-gnu",
    "macos-arm64": "aarch64-apple-darwin",
}
# libtpu is built for a newer C library than jax is.
_TPU_HOSTS = {"linux-x86_64": "x86_64-manylinux_2_31", "linux-aarch64": "aarch64-manylinux_2_31"}
_REASON_LENGTH = 200
_CONCLUSION = re.compile(r".*?\bbecause (.*?),? we can conclude\b.*", re.IGNORECASE | re.DOTALL)
# A pin is wanted whatever the era: this date is after any upload.
_NO_CUT_OFF = "2999-01-01T00:00:00Z"

# A jax without its plugins compiles for one only with what XLA calls: ptxas and libdevice.
_PLATFORM_PACKAGES = {
    "": (),
    "tpu": ("jax[tpu]=={release.version}",),
    "gpu": ("jax[cuda12]=={release.version}",),
    "cuda": (
        "jax-cuda12-plugin=={release.jaxlib}",
        "jax-cuda12-pjrt=={release.jaxlib}",
        "nvidia-cuda-nvcc-cu12",
    ),
}
# What flax asks for and imports only to store checkpoints: a tenth of a compile-only cell.
_CHECKPOINTS = ("orbax-checkpoint", "tensorstore")
# From 0.4.35 to 0.5.0 jax asks for a libtpu, and for an empty libtpu-nightly to clear the one
# of older releases away: no index has either nightly.
_NIGHTLY = "libtpu-nightly"
# libtpu came to the index on one day, for releases older than that: each asks for its own.
_UPLOADED_LATE = {"tpu": {"libtpu": datetime(2025, 2, 7, tzinfo=UTC)}}
_LEFT_OUT = {"tpu": (_NIGHTLY, *_CHECKPOINTS), "cuda": _CHECKPOINTS}


def find_lock(cell: Cell, releases: Releases, *, folders: Sequence[Path], cache: Path) -> Lock:
    """Return the lock of a cell.

    Args:
        cell: Cell to install.
        releases: Known releases.
        folders: Matrix folders; the locks committed in their `locks/` come first.
        cache: Cache folder; what must be resolved is kept in its `locks/`.

    Returns:
        A lock that answers the cell's requirements; for a `path:` cell the list of what is
        installed there.

    Raises:
        InfrastructureError: If the index cannot be reached, or a lock not be read or written.
        UsageError: If the resolver refuses the cell's pins, the Python does not fit, or no
            release can be had for the platform.
    """
    if cell.place.refused:
        raise UsageError(f"{cell.id}: {cell.place.refused}")
    if cell.interpreter is not None:
        return _installed(cell, cell.interpreter)
    for folder in folders:
        lock = read_lock(folder / "locks" / f"{cell.env_id}.txt")
        if lock is not None and _answers(lock, cell, releases):
            return lock
    lock = read_lock(cache / "locks" / f"{cell.env_id}.txt")
    if lock is not None and _answers(lock, cell, releases) and _fresh(lock, cell):
        return lock
    return store_lock(resolve_lock(cell, releases, work=cache), cache / "locks")


def resolve_lock(cell: Cell, releases: Releases, *, work: Path) -> Lock:
    """Resolve a cell's environment with uv.

    Args:
        cell: Cell to install; not a `path:` one.
        releases: Known releases.
        work: Folder to run uv in.

    Returns:
        The lock, with the hashes of the wheels that serve on each supported host. Packages
        that the resolver refuses beside jax are left out, with the reason on top.

    Raises:
        InfrastructureError: If the index cannot be reached.
        UsageError: If there is no solution even without the further packages, or the release
            has no wheels for the Python.
    """
    release = releases.get(cell.release)
    if not release.admits(cell.python):
        raise UsageError(
            f"{cell.id}: jax {release.version} cannot be installed on python {cell.python}; "
            f"expected one of {', '.join(filter(release.admits, release.pythons))}"
        )
    resolver = _Resolver(cell, _cut_off(cell, releases), work)
    required, pinned = _required(cell, releases)
    try:
        pins = resolver.resolve(required)
    except NoSolutionError as error:
        raise UsageError(f"{cell.id}: no environment satisfies it: {_cause(error)}") from error
    if cell.place.packages == "tpu" and "libtpu" not in pins:
        raise UsageError(
            f"{cell.id}: jax {release.version} asks for {_NIGHTLY}, which no package index has; "
            "releases from 0.4.35 on ask for libtpu"
        )
    refused: dict[str, str] = {}
    for package in (name for name in releases.packages if name not in pinned):
        wider = resolver.resolve_or_reason([*required, package])
        if isinstance(wider, str):
            refused[package] = wider
        else:
            pins = wider
            required.append(package)
    return _format(cell, releases, resolver, pins, refused)


class _Resolver:
    """One resolution: a cell's Python and pins, a cut-off date, a folder to run uv in."""

    def __init__(self, cell: Cell, cut_off: datetime, work: Path) -> None:
        self.cut_off = f"{cut_off:%Y-%m-%dT%H:%M:%SZ}"
        late = _UPLOADED_LATE.get(cell.place.packages, {})
        self._newer = {
            name: f"{day:%Y-%m-%dT%H:%M:%SZ}" for name, day in late.items() if day > cut_off
        } | {pin.partition("==")[0]: _NO_CUT_OFF for pin in cell.pins}
        self._cell = cell
        self._work = work

    def resolve(self, requirements: Sequence[str], host: str = "linux-x86_64") -> Pins:
        base = getattr(sys, "_base_executable", None) or sys.executable
        hosts = HOSTS | (_TPU_HOSTS if self._cell.place.packages == "tpu" else {})
        arguments = ["pip", "compile", "-", "--python", base, "--python-platform", hosts[host]]
        arguments += ["--python-version", self._cell.python, "--only-binary", ":all:"]
        arguments += ["--exclude-newer", self.cut_off, "--format", "pylock.toml", "--no-header"]
        for name, until in self._newer.items():
            arguments += ["--exclude-newer-package", f"{name}={until}"]
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as left_out:
            left_out.write("\n".join(_left_out(self._cell)))
            left_out.flush()
            arguments += ["--excludes", left_out.name]
            text = run_uv(arguments, cwd=self._work, stdin="\n".join(requirements) + "\n")
        return parse_pylock(text)

    def resolve_or_reason(self, requirements: Sequence[str]) -> Pins | str:
        try:
            return self.resolve(requirements)
        except NoSolutionError as error:
            return _cause(error)[:_REASON_LENGTH]

    def same_on(self, host: str, pins: Pins) -> Pins | None:
        """Resolve exactly these versions on another host; None when it cannot have them."""
        try:
            found = self.resolve([f"{p.name}=={p.version}" for p in pins.values()], host)
        except NoSolutionError:
            return None
        return found if found.keys() == pins.keys() else None


def _format(
    cell: Cell, releases: Releases, resolver: _Resolver, pins: Pins, refused: dict[str, str]
) -> Lock:
    hashes = {name: set(pin.hashes) for name, pin in pins.items()}
    hosts = ["linux-x86_64"]
    for host in list(HOSTS)[1:]:
        found = resolver.same_on(host, pins)
        if found is not None:
            hosts.append(host)
            for name, pin in found.items():
                hashes[name].update(pin.hashes)
    lines = [
        f"# {MAGIC}",
        f"# environment: {cell.env_id}",
        f"# python: {cell.python}",
        f"# requires: {_requires(cell, releases)}",
        f"# exclude-newer: {resolver.cut_off}",
        f"# hosts: {' '.join(hosts)}",
    ]
    if left_out := _left_out(cell):
        lines.append(f"# left out: {' '.join(left_out)}")
    lines += [f"# without {package}: {reason}" for package, reason in refused.items()]
    for name in sorted(pins):
        parts = [f"{name}=={pins[name].version}", *sorted(f"--hash={h}" for h in hashes[name])]
        lines.append(" \\\n    ".join(parts))
    text = "\n".join(lines) + "\n"
    return Lock(text=text, path=Path(f"{cell.env_id}.txt"))


def _required(cell: Cell, releases: Releases) -> tuple[list[str], set[str]]:
    """Return what must be installed, and the names the cell pins."""
    release = releases.get(cell.release)
    pinned = {pin.partition("==")[0] for pin in cell.pins}
    required = [f"jax=={release.version}", f"jaxlib=={release.jaxlib}"]
    required += [text.format(release=release) for text in _PLATFORM_PACKAGES[cell.place.packages]]
    required = [text for text in required if text.partition("==")[0] not in pinned]
    return [*required, *cell.pins], pinned


def _requires(cell: Cell, releases: Releases) -> str:
    required, pinned = _required(cell, releases)
    return " ".join([*required, *(name for name in releases.packages if name not in pinned)])


def _left_out(cell: Cell) -> tuple[str, ...]:
    """Return the packages that are not installed whoever asks for them; pinned ones are."""
    pinned = {pin.partition("==")[0] for pin in cell.pins}
    return tuple(name for name in _LEFT_OUT.get(cell.place.packages, ()) if name not in pinned)


def _cause(error: NoSolutionError) -> str:
    """Return the premises that a resolver's proof begins with, without what follows from them."""
    said = str(error)
    match = _CONCLUSION.fullmatch(said)
    return match[1] if match else said


def _answers(lock: Lock, cell: Cell, releases: Releases) -> bool:
    """Say whether a lock was made for this very request; packages asked for may have changed."""
    made_for = [lock.headers.get(name, "") for name in ("environment", "requires", "left out")]
    return made_for == [cell.env_id, _requires(cell, releases), " ".join(_left_out(cell))]


def _fresh(lock: Lock, cell: Cell) -> bool:
    """Say whether a cached lock still holds: `latest` is resolved anew each day."""
    today = f"{_cut_off_latest():%Y-%m-%dT%H:%M:%SZ}"
    return cell.deps != "latest" or lock.headers.get("exclude-newer") == today


def _cut_off(cell: Cell, releases: Releases) -> datetime:
    if cell.deps == "latest":
        return _cut_off_latest()
    day = releases.get(cell.release).date.astimezone(UTC).date()
    # The day itself and one more: wheels of one release trickle in over hours.
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=2)


def _cut_off_latest() -> datetime:
    now = datetime.now(tz=UTC)
    return datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)


def _installed(cell: Cell, interpreter: Path) -> Lock:
    found = inspect_path_environment(interpreter)
    if found.python != cell.python:
        raise InfrastructureError(
            f"{interpreter}: is python {found.version}, the cell expects {cell.python}"
        )
    lines = [
        f"# {MAGIC}",
        f"# environment: {cell.env_id}",
        f"# python: {found.version}",
        *(f"{name}=={version}" for name, version in sorted(found.packages.items())),
    ]
    return Lock(text="\n".join(lines) + "\n", path=interpreter)
