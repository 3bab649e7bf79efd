"""Versions of what a program needs that go with both ends of a search, so that they do not float.

A requirement without a version, e.g. `--with optimistix`, resolves to another version beside each
release of jax. What then changes from release to release need not be jax.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conformance.cells.overlay import find_overlay_lock
from conformance.cells.provision import provision
from conformance.cells.uvtool import NoSolutionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell


def common_versions(
    ends: Sequence[PlannedCell],
    locks: Mapping[str, Lock],
    requirements: tuple[str, ...],
    cache: Path,
) -> tuple[str, ...]:
    """Return pins of all that some requirements resolve to, which go with both ends.

    The older version is tried at the newer end, then the newer one at the older end: packages
    mostly say the oldest jax they go with, seldom the newest.

    Args:
        ends: The cells of both ends.
        locks: Their locks, by cell id.
        requirements: Requirements in addition to the packages of the cells.
        cache: Cache folder.

    Returns:
        Requirements `NAME==VERSION`; empty where nothing floats, or no version goes with both.

    Raises:
        InfrastructureError: If an environment cannot be made, or the index does not answer.
    """
    floating = [text for text in requirements if _floats(text)]
    if not floating:
        return ()
    with suppress(NoSolutionError):
        found = [_resolved(end, locks[end.cell.id], requirements, cache) for end in ends]
        if found[0] == found[1]:
            return _pins(found[0])
        for versions, end in zip(found, reversed(ends), strict=True):
            pins = _pins(versions)
            with suppress(NoSolutionError):
                _resolved(end, locks[end.cell.id], (*requirements, *pins), cache)
                return pins
    return ()


def _floats(text: str) -> bool:
    wanted = Requirement(text)
    exact = any(spec.operator in ("==", "===") for spec in wanted.specifier)
    return not exact and wanted.url is None


def _resolved(
    end: PlannedCell, lock: Lock, requirements: tuple[str, ...], cache: Path
) -> Mapping[str, str]:
    python = provision(end.cell, lock=lock, cache=cache).python
    versions = find_overlay_lock(python, lock, requirements, cache).versions
    urls = {canonicalize_name(Requirement(text).name) for text in requirements if " @ " in text}
    return {name: version for name, version in versions.items() if name not in urls}


def _pins(versions: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}=={version}" for name, version in sorted(versions.items()))
