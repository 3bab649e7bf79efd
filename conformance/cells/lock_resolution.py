"""Finding the lock of a cell: committed, cached, or resolved with uv as of the release's date."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conformance.cells.interpreter_inspection import inspect_path_environment
from conformance.cells.lock import MAGIC, NIGHTLIES, Lock, read_lock, store_lock
from conformance.cells.nightly import resolve_nightly
from conformance.cells.releases import is_nightly
from conformance.cells.resolver import HOSTS, TPU_HOSTS, Resolver, explain_refusal, nightly_names
from conformance.cells.uvtool import NoSolutionError
from conformance.errors import ConformanceError, InfrastructureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.cells.cell import Cell
    from conformance.cells.releases import Release, Releases
    from conformance.cells.resolver import Pins

_REASON_LENGTH = 200
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
_GPU_PLUGINS = ("jax-cuda12-plugin[with-cuda]", "jax-cuda12-pjrt")
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
        return _lock_installed(cell, cell.interpreter)
    if cell.is_unresolved:
        found = resolve_nightly(cell.release, releases.nightlies)
        raise InfrastructureError(f"{cell.id}: that is {found}, the index answers again; run again")
    cached = read_lock(cache / "locks" / f"{cell.env_id}.txt")
    if cached is not None and is_nightly(cell.release) and not _is_known(cell, releases):
        return _from(releases, cached)
    for folder in folders:
        lock = read_lock(folder / "locks" / f"{cell.env_id}.txt")
        if lock is not None and _answers(lock, cell, releases):
            return _from(releases, lock)
    if cached is not None and _answers(cached, cell, releases) and _fresh(cached, cell):
        return _from(releases, cached)
    made = store_lock(resolve_lock(cell, releases, work=cache), cache / "locks")
    return _from(releases, made)


def _is_known(cell: Cell, releases: Releases) -> bool:
    """Say whether a nightly is in its index still, and that answers; what was locked stays so."""
    try:
        releases.get(cell.release)
    except ConformanceError:
        return False
    return True


def _from(releases: Releases, lock: Lock) -> Lock:
    """Return a lock that knows where its nightlies are, should they have to be installed."""
    if not lock.nightlies:
        return lock
    try:
        return replace(lock, nightly_index=releases.nightlies.url)
    except ConformanceError:  # none is configured any more: what is installed can be used
        return lock


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
    resolver = _resolver(cell, releases, work)
    required, pinned = _collect_requirements(cell, releases)
    try:
        pins = resolver.resolve(required)
    except NoSolutionError as error:
        raise UsageError(
            f"{cell.id}: no environment satisfies it: {explain_refusal(error)}"
        ) from error
    if cell.place.packages == "tpu" and "libtpu" not in pins:
        raise UsageError(
            f"{cell.id}: jax {release.version} asks for {_NIGHTLY}, which no package index has; "
            "releases from 0.4.35 on ask for libtpu"
        )
    refused: dict[str, str] = {}
    for package in (name for name in releases.packages if name not in pinned):
        try:
            pins = resolver.resolve([*required, package])
            required.append(package)
        except NoSolutionError as error:
            refused[package] = explain_refusal(error)[:_REASON_LENGTH]
    return _format(cell, releases, resolver, pins, refused)


def _resolver(cell: Cell, releases: Releases, work: Path) -> Resolver:
    cut_off = _cut_off(cell, releases)
    late = _UPLOADED_LATE.get(cell.place.packages, {})
    newer = {name: _time(day) for name, day in late.items() if day > cut_off}
    newer |= {pin.partition("==")[0]: _NO_CUT_OFF for pin in cell.pins}
    nightlies = nightly_names(_collect_requirements(cell, releases)[0])
    return Resolver(
        python=cell.python,
        cut_off=_time(cut_off),
        newer={name: until for name, until in newer.items() if name not in nightlies},
        left_out=_left_out(cell),
        hosts=HOSTS | (TPU_HOSTS if cell.place.packages == "tpu" else {}),
        nightly_index=releases.nightlies.url if nightlies else "",
        work=work,
    )


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _format(
    cell: Cell, releases: Releases, resolver: Resolver, pins: Pins, refused: dict[str, str]
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
    if nightlies := nightly_names(_collect_requirements(cell, releases)[0]):
        lines.append(f"# {NIGHTLIES}: {' '.join(nightlies)}")
    lines += [f"# without {package}: {reason}" for package, reason in refused.items()]
    for name in sorted(pins):
        parts = [f"{name}=={pins[name].version}", *sorted(f"--hash={h}" for h in hashes[name])]
        lines.append(" \\\n    ".join(parts))
    text = "\n".join(lines) + "\n"
    return Lock(text=text, path=Path(f"{cell.env_id}.txt"))


def _collect_requirements(cell: Cell, releases: Releases) -> tuple[list[str], set[str]]:
    """Return what must be installed, and the names the cell pins."""
    release = releases.get(cell.release)
    pinned = {pin.partition("==")[0] for pin in cell.pins}
    required = [f"jax=={release.version}", f"jaxlib=={release.jaxlib}"]
    required += [text.format(release=release) for text in _PLATFORM_PACKAGES[cell.place.packages]]
    if is_nightly(release.version):
        required += _with_a_nightly(cell, release, releases)
    required = [t for t in required if canonicalize_name(Requirement(t).name) not in pinned]
    return [*required, *cell.pins], pinned


def _with_a_nightly(cell: Cell, release: Release, releases: Releases) -> list[str]:
    """Return what must be asked for by name, for only that may come from the nightlies' index."""
    packages = cell.place.packages
    if packages == "gpu" and is_nightly(release.jaxlib):
        return [f"{name}=={release.jaxlib}" for name in _GPU_PLUGINS]
    if packages == "tpu":
        libtpu = releases.nightlies.find_newest("libtpu", release.date.date())
        return [] if libtpu is None else [f"libtpu=={libtpu}"]
    return []


def _requires(cell: Cell, releases: Releases) -> str:
    required, pinned = _collect_requirements(cell, releases)
    return " ".join([*required, *(name for name in releases.packages if name not in pinned)])


def _left_out(cell: Cell) -> tuple[str, ...]:
    """Return the packages that are not installed whoever asks for them; pinned ones are."""
    pinned = {pin.partition("==")[0] for pin in cell.pins}
    return tuple(name for name in _LEFT_OUT.get(cell.place.packages, ()) if name not in pinned)


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


def _lock_installed(cell: Cell, interpreter: Path) -> Lock:
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
