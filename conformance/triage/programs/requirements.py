"""The requirements of a program in addition to the packages of a cell."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conformance.cells.overlay import find_overlay_lock
from conformance.cells.provision import provision
from conformance.cells.requirements import parse_requirement
from conformance.cells.uvtool import NoSolutionError
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell

_HEADER: Final = re.compile(r"(?m)^# /// script\s*$\n((?:^#(?:| .*)$\n)*?)^# ///\s*$")
"""The inline requirements of a script (PEP 723)."""


def collect_requirements(
    script: str, wanted: Iterable[str], given: Iterable[str]
) -> tuple[str, ...]:
    """Return the requirements to install in addition to the packages of a cell.

    Args:
        script: Text of a script. The requirements of its header apply, except those on packages
            of the cell, whose versions a search varies.
        wanted: Requirements that the user names.
        given: Packages of the cell.

    Raises:
        UsageError: If a text is not a requirement.
    """
    has = {canonicalize_name(name) for name in given}
    own = [
        text
        for text in _read_header(script)
        if canonicalize_name(parse_requirement(text).name) not in has
    ]
    # Sorted and parsed, so that equal requirements share one overlay in the cache.
    return tuple(sorted({str(parse_requirement(text)) for text in (*own, *wanted)}))


def strip_header(script: str) -> str:
    """Return a script without its inline requirements.

    Args:
        script: Text of the script.
    """
    return _HEADER.sub("", script)


def _read_header(script: str) -> list[str]:
    match = _HEADER.search(script)
    if match is None:
        return []
    lines = (line.removeprefix("#").removeprefix(" ") for line in match[1].splitlines())
    try:
        dependencies = tomllib.loads("\n".join(lines)).get("dependencies", [])
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"header of the script: expected TOML: {str(error).lower()}") from None
    if not isinstance(dependencies, list):
        return []
    return [text for text in dependencies if isinstance(text, str)]


def find_common_versions(
    ends: Sequence[PlannedCell],
    locks: Mapping[str, Lock],
    requirements: tuple[str, ...],
    cache: Path,
) -> tuple[str, ...]:
    """Return pins of everything that some requirements resolve to, valid at both ends.

    The older versions are tried at the newer end, then the newer versions at the older end:
    packages mostly state the oldest jax that they support, seldom the newest.

    Args:
        ends: The cells of both ends.
        locks: Locks of the cells, by cell id.
        requirements: Requirements in addition to the packages of the cells.
        cache: Cache folder.

    Returns:
        Requirements `NAME==VERSION`; empty if nothing floats, or no version suits both ends.

    Raises:
        InfrastructureError: If an environment cannot be made, or the index does not answer.
    """
    floating = [text for text in requirements if _is_floating(text)]
    if not floating:
        return ()
    with suppress(NoSolutionError):
        found = [_resolve(end, locks[end.cell.id], requirements, cache) for end in ends]
        if found[0] == found[1]:
            return _format_pins(found[0])
        # Both ends need the same versions: each end is tried with those of the other.
        for versions, end in zip(found, reversed(ends), strict=True):
            pins = _format_pins(versions)
            with suppress(NoSolutionError):
                _resolve(end, locks[end.cell.id], (*requirements, *pins), cache)
                return pins
    return ()


def _is_floating(text: str) -> bool:
    wanted = Requirement(text)
    exact = any(spec.operator in ("==", "===") for spec in wanted.specifier)
    return not exact and wanted.url is None


def _resolve(
    end: PlannedCell, lock: Lock, requirements: tuple[str, ...], cache: Path
) -> Mapping[str, str]:
    python = provision(end.cell, lock=lock, cache=cache).python
    versions = find_overlay_lock(python, lock, requirements, cache).versions
    # A requirement by URL has no version that an index could offer.
    urls = {canonicalize_name(Requirement(text).name) for text in requirements if " @ " in text}
    return {name: version for name, version in versions.items() if name not in urls}


def _format_pins(versions: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{name}=={version}" for name, version in sorted(versions.items()))
