"""Selectors of releases and cells: `0.6.0`, `>=0.8@tpu:v5e:2x2`, `path:/env/bin/python@gpu`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from conformance.cells.cell import PATH_PREFIX, Cell, is_cell_id, parse_cell, parse_options
from conformance.cells.interpreter_inspection import inspect_path_environment
from conformance.cells.nightly import is_nightly_selector, resolve_nightly
from conformance.cells.platforms import get_platform
from conformance.cells.releases import REFRESH, is_nightly
from conformance.errors import InfrastructureError, UsageError
from conformance.model.ranges import in_range

if TYPE_CHECKING:
    from conformance.cells.releases import Releases

_PLATFORM = re.compile(r"(?P<selector>[^@].*)@(?P<platform>[a-z][a-z0-9]*([:-][^/@]*)?)")
_COUNTED = re.compile(r"(cpu|gpu|tpu)([1-9]\d{0,5})")
_LATEST = re.compile(r"latest(?:-(\d{1,6}))?")
_FORMS = (
    "an exact release, a PEP 440 specifier, latest, latest-N, nightly, nightly-N, "
    "nightly:YYYY-MM-DD, or path:/env/bin/python, each followed by @PLATFORM unless it is cpu"
)


def resolve_selector(selector: str, releases: Releases) -> tuple[str, ...]:
    """Return the releases that a selector selects, oldest first.

    Args:
        selector: Exact release (`0.6.0`), PEP 440 specifier (`>=0.6,<0.7`), `latest` (the newest),
            `latest-3` (the third before it), `nightly`, `nightly-3`, `nightly:2025-11-20`, or
            `path:` and an interpreter.
        releases: Known releases.

    Returns:
        One release or more; for `path:` the selector with an absolute path.

    Raises:
        UsageError: If the selector is not valid, or selects no known release.
        InfrastructureError: If it selects nightlies, and their index does not answer.
    """
    text = selector.strip()
    if text.startswith(PATH_PREFIX):
        return (_make_absolute(text),)
    if latest := _LATEST.fullmatch(text):
        back = int(latest[1] or 0)
        if back >= len(releases.versions):
            raise UsageError(
                f"selector {text!r}: only {len(releases.versions)} releases are known; {REFRESH}"
            )
        return (releases.versions[-1 - back],)
    if is_nightly_selector(text):
        return (resolve_nightly(text, releases.nightlies),)
    if _is_version(text):
        return (releases.get(text).version,)
    specifier = _parse_specifier(text)
    found = tuple(v for v in releases.versions if specifier.contains(v, prereleases=True))
    if not found:
        first, last = releases.versions[0], releases.newest.version
        raise UsageError(
            f"selector {text!r} matches no known release; the release table has {first} to "
            f"{last}; {REFRESH}"
        )
    return found


def resolve_releases(selector: str, releases: Releases) -> tuple[tuple[str, str], ...]:
    """Return the releases that a selector selects, each with the default Python of its cells.

    If the index of nightlies does not answer, the selector of a nightly is returned instead of its
    version, with the Python of the newest release. Its cells can then be planned, and the failure
    is reported when their locks are looked up.

    Args:
        selector: As for `resolve_selector`.
        releases: Known releases.

    Raises:
        UsageError: If the selector is not valid, or selects no known release.
        InfrastructureError: If the interpreter of a `path:` selector does not run.
    """
    try:
        found = resolve_selector(selector, releases)
        return tuple((release, find_python(release, releases)) for release in found)
    except InfrastructureError:
        text = selector.strip()
        if not (is_nightly_selector(text) or is_nightly(text)):
            raise
        return ((text, releases.find_python(releases.newest.version)),)


def matches_selector(selector: str, release: str, releases: Releases) -> bool:
    """Say whether a selector selects a release; unlike resolution, no match is no error.

    Args:
        selector: As for `resolve_selector`.
        release: Known release, nightly or `path:` release. For a nightly and a specifier see
            `in_range`.
        releases: Known releases.

    Raises:
        UsageError: If the selector is not valid.
        InfrastructureError: If both are nightlies, and their index does not answer.
    """
    text = selector.strip()
    # Before all else: an interpreter is of no version, so no other selector matches it.
    if text.startswith(PATH_PREFIX) or release.startswith(PATH_PREFIX):
        return text.startswith(PATH_PREFIX) and _make_absolute(text) == release
    if is_nightly_selector(release):
        return text == release
    if is_nightly_selector(text):
        return is_nightly(release) and release in resolve_selector(text, releases)
    if _LATEST.fullmatch(text):
        return release in resolve_selector(text, releases)
    if _is_version(text):
        return Version(text) == Version(release)
    return in_range(release, str(_parse_specifier(text)))


def select_cells(text: str, releases: Releases) -> tuple[Cell, ...]:
    """Return the cells that a value of `--cell` selects.

    Args:
        text: Cell id (`jax0.6.0-cpu4`) or selector (`>=0.8`), optionally with a platform
            (`>=0.8@tpu:v5e:2x2`, `path:/env/bin/python@gpu`).
        releases: Known releases.

    Returns:
        The cell with the id, or a cell with default options for each selected release.

    Raises:
        UsageError: If the text is neither a cell id nor a selector.
        InfrastructureError: If the interpreter of a `path:` selector does not run.
    """
    if is_cell_id(text):
        cell = parse_cell(text, releases)
        if cell.is_unresolved:  # the index may answer now
            ((release, python),) = resolve_releases(cell.release, releases)
            cell = replace(cell, release=release, python=python)
        return (cell,)
    selector, fields = split_platform(text)
    return tuple(
        Cell(release=release, python=python, **fields)
        for release, python in resolve_releases(selector, releases)
    )


def split_platform(text: str) -> tuple[str, dict[str, Any]]:
    """Split a selector from the platform after an `@`.

    Args:
        text: `>=0.8@tpu:v5e:2x2`, `latest@gpu4`; a path may contain an `@` too.

    Returns:
        The selector, and fields of a cell: platform, devices and options as in a cell id
        (`@cpu4-x64`); no fields without a platform.

    Raises:
        UsageError: If there is no such platform.
    """
    match = _PLATFORM.fullmatch(text.strip())
    if match is None:
        return text, {}
    selector, name = match["selector"].strip(), match["platform"]
    if counted := _COUNTED.fullmatch(name):
        return selector, {"platform": counted[1], "devices": int(counted[2])}
    try:
        return selector, {"platform": get_platform(name).name}
    except UsageError:
        if "-" not in name:
            raise
    fields = parse_options(name)
    # A cell normalises pins, config and flags: only normal forms can be compared.
    cell = Cell(release="0", python="3.11", **{"platform": "cpu", **fields})
    return selector, {name: getattr(cell, name) for name in fields if name != "python"}


def matches_cell(text: str, cell: Cell, releases: Releases) -> bool:
    """Say whether a value of `--cell` selects a cell; no match is no error.

    Args:
        text: As for `select_cells`; a selector without a platform selects all platforms.
        cell: Cell to compare.
        releases: Known releases.

    Raises:
        UsageError: If the text is neither a cell id nor a selector.
    """
    if is_cell_id(text):
        return parse_cell(text, releases) == cell
    selector, fields = split_platform(text)
    has_fields = all(getattr(cell, name) == value for name, value in fields.items())
    return has_fields and matches_selector(selector, cell.release, releases)


def find_python(release: str, releases: Releases) -> str:
    """Return the default Python of a release's cells, `major.minor`.

    Args:
        release: Known release or `path:` release, whose interpreter is run.
        releases: Known releases.

    Raises:
        InfrastructureError: If the interpreter of a `path:` release does not run.
    """
    if release.startswith(PATH_PREFIX):
        return inspect_path_environment(Path(release.removeprefix(PATH_PREFIX))).python
    return releases.find_python(release)


def _make_absolute(selector: str) -> str:
    path = Path(selector.removeprefix(PATH_PREFIX)).expanduser()
    # Links are not resolved: the python of an environment is a link to a base interpreter.
    return f"{PATH_PREFIX}{path.absolute()}"


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except ValueError:  # also for more than 4,300 digits
        return False
    return True


def _parse_specifier(text: str) -> SpecifierSet:
    try:
        specifier = SpecifierSet(text)
        specifier.contains("0")  # versions are parsed lazily
    except ValueError:  # also for more than 4,300 digits
        specifier = SpecifierSet()
    if not len(specifier):
        raise UsageError(f"selector {text!r} is not valid; expected {_FORMS}")
    return specifier
