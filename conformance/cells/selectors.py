"""Selectors: `0.6.0`, `>=0.8@tpu:v5e:2x2`, `path:/env/bin/python@gpu`, or a whole cell id."""

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
    "nightly:YYYY-MM-DD, or path:/env/bin/python, and @PLATFORM after it for another than cpu"
)


def resolve_selector(selector: str, releases: Releases) -> tuple[str, ...]:
    """Return the releases a selector names, oldest first.

    Args:
        selector: Exact release (`0.6.0`), PEP 440 specifier (`>=0.6,<0.7`) of releases, `latest`
            (the newest), `latest-3` (the third before it), `nightly`, `nightly-3` or
            `nightly:2025-11-20` likewise, or `path:` and an interpreter.
        releases: Known releases.

    Returns:
        One release or more; for `path:` the selector itself with the path made absolute.

    Raises:
        UsageError: If it is no selector, or names no known release.
        InfrastructureError: If it is for nightlies, and their index does not answer.
    """
    text = selector.strip()
    if text.startswith(PATH_PREFIX):
        return (_absolute(text),)
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
    found = tuple(v for v in releases.versions if _specifier(text).contains(v, prereleases=True))
    if not found:
        first, last = releases.versions[0], releases.newest.version
        raise UsageError(
            f"selector {text!r} matches no known release; known are {first}, where the release "
            f"table begins, to {last}; {REFRESH}"
        )
    return found


def resolve_releases(selector: str, releases: Releases) -> tuple[tuple[str, str], ...]:
    """Return the releases a selector names, each with the Python that its cells have by default.

    A nightly that its index cannot tell now stays as it is named, with the Python of the newest
    release: cells of it can be planned, and whoever looks for their lock is told why there is none.

    Args:
        selector: As for `resolve_selector`.
        releases: Known releases.

    Raises:
        UsageError: If it is no selector, or names no known release.
        InfrastructureError: If the interpreter of a `path:` selector does not serve.
    """
    try:
        found = resolve_selector(selector, releases)
        return tuple((release, cell_python(release, releases)) for release in found)
    except InfrastructureError:
        text = selector.strip()
        if not (is_nightly_selector(text) or is_nightly(text)):
            raise
        return ((text, releases.find_python(releases.newest.version)),)


def matches_selector(selector: str, release: str, releases: Releases) -> bool:
    """Say whether a selector names a release; unlike resolving, naming none is no error.

    Args:
        selector: As for `resolve_selector`.
        release: A known release, or a `path:` one.
        releases: Known releases.

    Returns:
        True when it does; a specifier may match a nightly, see `in_range`.

    Raises:
        UsageError: If it is no selector.
        InfrastructureError: If both are about nightlies, and their index does not answer.
    """
    text = selector.strip()
    if text.startswith(PATH_PREFIX) or release.startswith(PATH_PREFIX):
        return text.startswith(PATH_PREFIX) and _absolute(text) == release
    if is_nightly_selector(release):
        return text == release
    if is_nightly_selector(text):
        return is_nightly(release) and release in resolve_selector(text, releases)
    if _LATEST.fullmatch(text):
        return release in resolve_selector(text, releases)
    if _is_version(text):
        return Version(text) == Version(release)
    return in_range(release, str(_specifier(text)))


def select_cells(text: str, releases: Releases) -> tuple[Cell, ...]:
    """Return the cells that a command-line `--cell` names.

    Args:
        text: A cell id (`jax0.6.0-cpu4`), or a selector (`>=0.8`) and maybe a platform
            (`>=0.8@tpu:v5e:2x2`, `path:/env/bin/python@gpu`).
        releases: Known releases.

    Returns:
        The cell of the id, or one cell with the default options for each release selected.

    Raises:
        UsageError: If it is neither.
        InfrastructureError: If the interpreter of a `path:` selector does not serve; an index of
            nightlies that does not answer is none.
    """
    if is_cell_id(text):
        cell = parse_cell(text, releases)
        if cell.is_unresolved:  # its index may tell now which nightly it is
            ((release, python),) = resolve_releases(cell.release, releases)
            cell = replace(cell, release=release, python=python)
        return (cell,)
    selector, place = split_platform(text)
    return tuple(
        Cell(release=release, python=python, **place)
        for release, python in resolve_releases(selector, releases)
    )


def split_platform(text: str) -> tuple[str, dict[str, Any]]:
    """Return a selector, and the platform that may follow it after an `@`.

    Args:
        text: `>=0.8@tpu:v5e:2x2`, `latest@gpu4`; a path may have an `@` of its own in it.

    Returns:
        Selector, and what is said of a cell: its platform, its devices, and options as in a cell id
        (`@cpu4-x64`); nothing when none is named.

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
    # A cell has pins, config and flags in one spelling, which is what others are compared with.
    cell = Cell(release="0", python="3.11", **{"platform": "cpu", **fields})
    return selector, {name: getattr(cell, name) for name in fields if name != "python"}


def matches_cell(text: str, cell: Cell, releases: Releases) -> bool:
    """Say whether a command-line `--cell` names a cell; naming none is no error.

    Args:
        text: As for `select_cells`; a selector without a platform is for any.
        cell: A cell.
        releases: Known releases.

    Returns:
        True when it does.

    Raises:
        UsageError: If it is neither a cell id nor a selector.
    """
    if is_cell_id(text):
        return parse_cell(text, releases) == cell
    selector, place = split_platform(text)
    here = all(getattr(cell, name) == value for name, value in place.items())
    return here and matches_selector(selector, cell.release, releases)


def cell_python(release: str, releases: Releases) -> str:
    """Return the Python a release's cell has by default.

    Args:
        release: A known release, or a `path:` one.
        releases: Known releases.

    Returns:
        `major.minor`; for `path:` that of the interpreter, which is run to ask it.

    Raises:
        InfrastructureError: If the interpreter of a `path:` release does not serve.
    """
    if release.startswith(PATH_PREFIX):
        return inspect_path_environment(Path(release.removeprefix(PATH_PREFIX))).python
    return releases.find_python(release)


def _absolute(selector: str) -> str:
    path = Path(selector.removeprefix(PATH_PREFIX)).expanduser()
    # Not resolved: an environment's python is a link, and following it would leave it.
    return f"{PATH_PREFIX}{path.absolute()}"


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except ValueError:  # also a number of thousands of digits
        return False
    return True


def _specifier(text: str) -> SpecifierSet:
    try:
        specifier = SpecifierSet(text)
        specifier.contains("0")  # it reads its versions only when it is asked
    except ValueError:  # also a number of thousands of digits
        specifier = SpecifierSet()
    if not len(specifier):
        raise UsageError(f"selector {text!r} is not understood; expected {_FORMS}")
    return specifier
