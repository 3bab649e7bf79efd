"""The lock of a cell: committed, cached, or resolved with uv as of the release date."""

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
from conformance.cells.resolver import HOSTS, TPU_HOSTS, Resolver, explain_refusal, find_nightlies
from conformance.cells.uvtool import NoSolutionError
from conformance.errors import ConformanceError, InfrastructureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.cells.cell import Cell
    from conformance.cells.releases import Release, Releases
    from conformance.cells.resolver import Pins

_MAX_REASON = 200
"""Maximum length of a resolver's reason in a lock."""
# Pins are not limited by the era: this date is after any upload.
_NO_CUT_OFF = "2999-01-01T00:00:00Z"

# To compile for CUDA without a GPU, XLA needs ptxas and libdevice, which nvidia-cuda-nvcc has.
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
# Requirements that flax imports only to store checkpoints: a tenth of a compile-only cell's size.
_CHECKPOINT_PACKAGES = ("orbax-checkpoint", "tensorstore")
# From 0.4.35 to 0.5.0 jax requires a libtpu, and an empty libtpu-nightly that replaces that of
# older releases. No index has libtpu-nightly.
_NIGHTLY = "libtpu-nightly"
# All versions of libtpu for older releases were uploaded on this date.
_UPLOADED_LATE = {"tpu": {"libtpu": datetime(2025, 2, 7, tzinfo=UTC)}}
_EXCLUDED = {"tpu": (_NIGHTLY, *_CHECKPOINT_PACKAGES), "cuda": _CHECKPOINT_PACKAGES}


def find_lock(cell: Cell, releases: Releases, *, folders: Sequence[Path], cache: Path) -> Lock:
    """Return the lock of a cell.

    Args:
        cell: Cell to install.
        releases: Known releases.
        folders: Matrix folders; locks committed in their `locks/` come first.
        cache: Cache folder; resolved locks are stored in its `locks/`.

    Returns:
        A lock that satisfies the cell's requirements; for a `path:` cell the list of the installed
        packages.

    Raises:
        InfrastructureError: If the index cannot be reached, or a lock cannot be read or written.
        UsageError: If the pins have no solution, the release does not admit the Python, or the
            platform is not supported.
    """
    if cell.place.refused:
        raise UsageError(f"{cell.id}: {cell.place.refused}")
    if cell.interpreter is not None:
        return _list_installed(cell, cell.interpreter)
    # The index did not answer when the cell was planned; the lookup raises unless it does now.
    if cell.is_unresolved:
        found = resolve_nightly(cell.release, releases.nightlies)
        raise InfrastructureError(f"{cell.id}: the index now answers, with {found}; run again")
    cached = read_lock(cache / "locks" / f"{cell.env_id}.txt")
    if cached is not None and is_nightly(cell.release) and not _is_known(cell, releases):
        # The index deletes old nightlies: an environment that was locked stays usable.
        return _set_nightly_index(releases, cached)
    # Committed locks come first: they were reviewed, and are the same on every machine. One for
    # other requirements is passed over, so that a user can change these without editing it.
    for folder in folders:
        lock = read_lock(folder / "locks" / f"{cell.env_id}.txt")
        if lock is not None and _satisfies(lock, cell, releases):
            return _set_nightly_index(releases, lock)
    if cached is not None and _satisfies(cached, cell, releases) and _is_current(cached, cell):
        return _set_nightly_index(releases, cached)
    lock = resolve_lock(cell, releases, work=cache)
    return _set_nightly_index(releases, store_lock(lock, cache / "locks"))


def _is_known(cell: Cell, releases: Releases) -> bool:
    """Say whether the index answers and still has a cell's nightly."""
    try:
        releases.get(cell.release)
    except ConformanceError:
        return False
    return True


def _set_nightly_index(releases: Releases, lock: Lock) -> Lock:
    """Return a lock with the URL of the index of its nightlies, which an installation needs."""
    if not lock.nightlies:
        return lock
    try:
        return replace(lock, nightly_index=releases.nightlies.url)
    except ConformanceError:  # no longer configured: an installed environment can still be used
        return lock


def resolve_lock(cell: Cell, releases: Releases, *, work: Path) -> Lock:
    """Resolve a cell's environment with uv.

    Args:
        cell: Cell to install, except a `path:` cell.
        releases: Known releases.
        work: Working directory of uv.

    Returns:
        The lock, with the hashes of the wheels for every supported host. Additional packages that
        cannot be resolved together with jax are left out, with the reason in a comment line.

    Raises:
        InfrastructureError: If the index cannot be reached.
        UsageError: If there is no solution even without additional packages, or the release has no
            wheels for the Python.
    """
    release = releases.get(cell.release)
    if not release.admits(cell.python):
        raise UsageError(
            f"{cell.id}: jax {release.version} cannot be installed on python {cell.python}; "
            f"expected one of {', '.join(filter(release.admits, release.pythons))}"
        )
    resolver = _make_resolver(cell, releases, work)
    required, pinned = _collect_requirements(cell, releases)
    try:
        pins = resolver.resolve(required)
    except NoSolutionError as error:
        raise UsageError(
            f"{cell.id}: no environment satisfies it: {explain_refusal(error)}"
        ) from error
    if cell.place.packages == "tpu" and "libtpu" not in pins:
        raise UsageError(
            f"{cell.id}: jax {release.version} requires {_NIGHTLY}, which no package index has; "
            "releases from 0.4.35 on require libtpu"
        )
    # One at a time, so that one conflicting package does not exclude the others.
    refusals: dict[str, str] = {}
    for package in (name for name in releases.packages if name not in pinned):
        try:
            pins = resolver.resolve([*required, package])
            required.append(package)
        except NoSolutionError as error:
            refusals[package] = explain_refusal(error)[:_MAX_REASON]
    return _make_lock(cell, releases, resolver, pins, refusals)


def resolve_bounds(
    cell: Cell, releases: Releases, requirements: Sequence[str], *, work: Path, jax: str = ""
) -> Pins:
    """Resolve requirements for a cell as a plain resolver does, by their declared bounds.

    Args:
        cell: Cell to install, without the additional packages of cells.
        releases: Known releases.
        requirements: The requirements, in addition to the release.
        work: Working directory of uv.
        jax: PEP 440 specifier of the releases that are admitted, empty for that of the cell.

    Raises:
        NoSolutionError: If there is no solution.
        InfrastructureError: If the index cannot be reached.
    """
    required = [f"jax{jax}"] if jax else _collect_requirements(cell, releases)[0]
    return _make_resolver(cell, releases, work).resolve([*required, *requirements])


def _make_resolver(cell: Cell, releases: Releases, work: Path) -> Resolver:
    cut_off = find_cut_off(cell, releases)
    late = _UPLOADED_LATE.get(cell.place.packages, {})
    newer = {name: _format_time(day) for name, day in late.items() if day > cut_off}
    newer |= {pin.partition("==")[0]: _NO_CUT_OFF for pin in cell.pins}
    nightlies = find_nightlies(_collect_requirements(cell, releases)[0])
    return Resolver(
        python=cell.python,
        cut_off=_format_time(cut_off),
        newer={name: until for name, until in newer.items() if name not in nightlies},
        excluded=_list_excluded(cell),
        hosts=HOSTS | (TPU_HOSTS if cell.place.packages == "tpu" else {}),
        nightly_index=releases.nightlies.url if nightlies else "",
        work=work,
    )


def _format_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def _make_lock(
    cell: Cell, releases: Releases, resolver: Resolver, pins: Pins, refusals: dict[str, str]
) -> Lock:
    hashes = {name: set(pin.hashes) for name, pin in pins.items()}
    hosts = ["linux-x86_64"]
    for host in list(HOSTS)[1:]:
        # The same versions everywhere: a difference between hosts would look like one between
        # releases.
        if (found := resolver.resolve_pins(host, pins)) is not None:
            hosts.append(host)
            for name, pin in found.items():
                hashes[name].update(pin.hashes)
    lines = [
        f"# {MAGIC}",
        f"# environment: {cell.env_id}",
        f"# python: {cell.python}",
        f"# requires: {_format_requires(cell, releases)}",
        f"# exclude-newer: {resolver.cut_off}",
        f"# hosts: {' '.join(hosts)}",
    ]
    if excluded := _list_excluded(cell):
        lines.append(f"# left out: {' '.join(excluded)}")
    if nightlies := find_nightlies(_collect_requirements(cell, releases)[0]):
        lines.append(f"# {NIGHTLIES}: {' '.join(nightlies)}")
    # Part of the lock, so that a reader sees why e.g. flax is missing in the cell.
    lines += [f"# without {package}: {reason}" for package, reason in refusals.items()]
    for name in sorted(pins):
        # Sorted: the hash of the text names the environment, so equal resolutions must be equal
        # texts.
        parts = [f"{name}=={pins[name].version}", *sorted(f"--hash={h}" for h in hashes[name])]
        lines.append(" \\\n    ".join(parts))
    text = "\n".join(lines) + "\n"
    return Lock(text=text, path=Path(f"{cell.env_id}.txt"))


def _collect_requirements(cell: Cell, releases: Releases) -> tuple[list[str], set[str]]:
    """Return the requirements of a cell, and the names of the packages that it pins."""
    release = releases.get(cell.release)
    pinned = {pin.partition("==")[0] for pin in cell.pins}
    required = [f"jax=={release.version}", f"jaxlib=={release.jaxlib}"]
    required += [text.format(release=release) for text in _PLATFORM_PACKAGES[cell.place.packages]]
    if is_nightly(release.version):
        required += _list_nightly_requirements(cell, release, releases)
    # A pin replaces the cell's own requirement, also of jaxlib: both together have no solution.
    required = [t for t in required if canonicalize_name(Requirement(t).name) not in pinned]
    return [*required, *cell.pins], pinned


def _list_nightly_requirements(cell: Cell, release: Release, releases: Releases) -> list[str]:
    """Return further requirements of a nightly.

    Only packages that are required by name may come from the index of nightlies.
    """
    packages = cell.place.packages
    if packages == "gpu" and is_nightly(release.jaxlib):
        return [f"{name}=={release.jaxlib}" for name in _GPU_PLUGINS]
    if packages == "tpu":
        libtpu = releases.nightlies.find_newest("libtpu", release.date.date())
        return [] if libtpu is None else [f"libtpu=={libtpu}"]
    return []


def _format_requires(cell: Cell, releases: Releases) -> str:
    required, pinned = _collect_requirements(cell, releases)
    return " ".join([*required, *(name for name in releases.packages if name not in pinned)])


def _list_excluded(cell: Cell) -> tuple[str, ...]:
    """Return the packages that are not installed even if required, unless they are pinned."""
    pinned = {pin.partition("==")[0] for pin in cell.pins}
    return tuple(name for name in _EXCLUDED.get(cell.place.packages, ()) if name not in pinned)


def _satisfies(lock: Lock, cell: Cell, releases: Releases) -> bool:
    """Say whether a lock was resolved for the cell's current requirements."""
    resolved_for = [lock.headers.get(name, "") for name in ("environment", "requires", "left out")]
    excluded = " ".join(_list_excluded(cell))
    return resolved_for == [cell.env_id, _format_requires(cell, releases), excluded]


def _is_current(lock: Lock, cell: Cell) -> bool:
    """Say whether a cached lock is still valid: `latest` is resolved again every day."""
    today = _format_time(_end_of_today())
    # Locks as of a release date never expire: no upload after that date counts.
    return cell.deps != "latest" or lock.headers.get("exclude-newer") == today


def find_cut_off(cell: Cell, releases: Releases) -> datetime:
    """Return the time from which uploads do not count for a cell.

    Args:
        cell: Cell to install, except a `path:` cell.
        releases: Known releases.
    """
    if cell.deps == "latest":
        return _end_of_today()
    day = releases.get(cell.release).date.astimezone(UTC).date()
    # The end of the next day: the wheels of a release are uploaded over hours.
    return datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=2)


def _end_of_today() -> datetime:
    now = datetime.now(tz=UTC)
    return datetime(now.year, now.month, now.day, tzinfo=UTC) + timedelta(days=1)


def _list_installed(cell: Cell, interpreter: Path) -> Lock:
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
