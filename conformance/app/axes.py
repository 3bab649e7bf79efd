"""The axes of a search: releases and nightlies, versions of a package, values of an option."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name
from packaging.version import Version

from conformance.app.session import Session
from conformance.cells.cell import PATH_PREFIX
from conformance.cells.interpreter_inspection import inspect_path_environment
from conformance.cells.lock import read_foreign_pins
from conformance.cells.nightly import NIGHTLY, find_nights
from conformance.cells.release_index import list_versions
from conformance.cells.releases import is_nightly
from conformance.cells.resolver import IMPORTED_BY_JAX
from conformance.cells.selectors import select_cells
from conformance.errors import UsageError
from conformance.search.axes import (
    CONFIG,
    FLAG,
    JAX,
    AxisPoint,
    SearchAxis,
    make_option_points,
    make_package_points,
    select_versions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.app.context import ProjectContext
    from conformance.app.search_options import SearchOptions
    from conformance.cells.cell import Cell


def make_axis(context: ProjectContext, options: SearchOptions, place: str) -> SearchAxis:
    """Return the axis of some options.

    Args:
        context: The project.
        options: The options; the axis `nightly` is `jax` with days for ends.
        place: Platform, empty for the default.

    Raises:
        UsageError: If an end is not there, or they are not in the order to find that.
        InfrastructureError: If an index does not answer.
    """
    name, find, values = options.axis, options.find, options.values
    older, newer = options.good, options.bad
    if find == "fix":
        older, newer = newer, older
    if name == JAX and newer.startswith(PATH_PREFIX):
        (last,) = select_cells(f"{newer}@{place}" if place else newer, context.releases)
        return make_axis_to(context, context.find_release(older), last)
    suffix = f"@{place}" if place else ""
    if name == NIGHTLY:
        name = JAX
        older, newer = (_parse_night(text) for text in (older, newer))
    if name == JAX:
        older, newer = (context.find_release(text) for text in (older, newer))
        _refuse_order(older, newer, find)
        return _make_release_axis(context, older, newer, suffix)
    (cell,) = select_cells(f"{context.find_release(options.jax)}{suffix}", context.releases)
    if name.startswith((CONFIG, FLAG)):
        named = values.split(",") if values else [older, newer]
        if (named[0], named[-1]) != (older, newer):
            raise UsageError(f"--values {values}: expected a list from {older} to {newer}")
        return SearchAxis(name=name, points=make_option_points(cell, name, named))
    package = canonicalize_name(name)
    versions = select_versions(package, list_versions(package), (older, newer))
    _refuse_order(older, newer, find)
    return SearchAxis(name=name, points=make_package_points(cell, package, versions))


def make_axis_to(context: ProjectContext, older: str, last: Cell) -> SearchAxis:
    """Return the releases up to a cell, each as that cell is except for the release.

    The cell of an environment that exists already comes after the release that it says it is: it
    may be that release with other code.

    Args:
        context: The project.
        older: The release to begin at, or a nightly.
        last: The cell.

    Raises:
        UsageError: If there is none to begin at.
        InfrastructureError: If the index of nightlies, or the interpreter of the cell, does not
            serve.
    """
    newest = find_release(last)
    if Version(older) > Version(newest) or (older == newest and last.interpreter is None):
        raise UsageError(
            f"{older} is not older than {last.id}, which is jax {newest}; expected an older one"
        )
    versions, refused = _list_versions(context, older, newest, ends=(older, last.release))
    points = [AxisPoint(label=text, cell=replace_release(last, text, context)) for text in versions]
    if last.interpreter is not None:
        points.append(AxisPoint(label=f"{last.release} (jax {newest})", cell=last))
    return SearchAxis(name=JAX, points=points, refused=refused)


def replace_release(cell: Cell, release: str, context: ProjectContext) -> Cell:
    """Return a cell with another release, on its Python where that admits it.

    Args:
        cell: The cell.
        release: A known release, or a nightly.
        context: The project.
    """
    known = context.releases
    python = cell.python if known.get(release).admits(cell.python) else known.find_python(release)
    return replace(cell, release=release, python=python)


def make_upgrade_points(
    context: ProjectContext, ends: tuple[str, str], place: str
) -> list[AxisPoint]:
    """Return both ends of an upgrade, and the releases between them.

    Args:
        context: The project.
        ends: What is left and what is wanted: each a release, a specifier (the newest release
            that fits), a lock, or `path:` and an interpreter.
        place: Platform.

    Raises:
        UsageError: If an end is not there, or they are not in order.
        InfrastructureError: If the interpreter of an end does not serve.
    """
    first, last = (_make_end(context, text, place) for text in ends)
    if first == last:
        raise UsageError(f"{ends[0]} and {ends[1]} are both {first.label}, expected two")
    older, newer = (Version(find_release(point.cell)) for point in (first, last))
    if older > newer:
        raise UsageError(
            f"{ends[0]} is jax {older}, newer than {ends[1]}, which is jax {newer}; expected the "
            f"older first: conformance upgrade {quote(ends[1])} {quote(ends[0])}"
        )
    between = [
        AxisPoint(label=version, cell=cell)
        for version in context.releases.versions
        if older <= Version(version) <= newer
        for cell in select_cells(f"{version}@{place}", context.releases)
    ]
    ends_ = (first.cell, last.cell)
    return [first, *(point for point in between if point.cell not in ends_), last]


def _make_end(context: ProjectContext, text: str, place: str) -> AxisPoint:
    """Return an end of an upgrade: what a lock pins, or the newest that a selector names."""
    if Path(text).is_file():
        cell = _find_locked_cell(context, Path(text), place)
        return AxisPoint(label=f"{text} (jax {cell.release})", cell=cell)
    cell = select_cells(f"{text}@{place}", context.releases)[-1]
    if cell.interpreter is None:
        return AxisPoint(label=cell.release, cell=cell)
    return AxisPoint(label=f"{text} (jax {find_release(cell)})", cell=cell)


def _find_locked_cell(context: ProjectContext, file: Path, place: str) -> Cell:
    """Return the cell of a lock: what cases import as pinned there, the rest as of the release."""
    pins = read_foreign_pins(file)
    if JAX not in pins:
        raise UsageError(f"{file}: pins no jax, expected one to upgrade")
    (cell,) = select_cells(f"{pins[JAX]}@{place}", context.releases)
    usual = Session(context=context).prepare([cell]).locks
    era = usual[cell.id].pins if cell.id in usual else {}
    own = (
        name for name in ("jaxlib", *IMPORTED_BY_JAX, *context.releases.packages) if name in pins
    )
    return replace(cell, pins=tuple(f"{n}=={pins[n]}" for n in own if era.get(n) != pins[n]))


def find_release(cell: Cell) -> str:
    """Return the version of jax in a cell.

    Args:
        cell: The cell; an environment that exists already is asked.

    Raises:
        UsageError: If it has none.
        InfrastructureError: If its interpreter does not run.
    """
    if cell.interpreter is None:
        return cell.release
    installed = inspect_path_environment(cell.interpreter).packages
    if JAX not in installed:
        raise UsageError(f"{cell.interpreter}: has no jax, expected one")
    return installed[JAX]


def check_nightlies(context: ProjectContext) -> bool:
    """Ask the index of nightlies again whether it has any.

    Args:
        context: The project.

    Raises:
        InfrastructureError: If it does not answer.
    """
    find = context.releases.find_nightlies
    return find is not None and bool(find().versions)


def _make_release_axis(context: ProjectContext, older: str, newer: str, suffix: str) -> SearchAxis:
    """Return the releases of a range; with the nightlies between them, if an end is one."""
    versions, refused = _list_versions(context, older, newer, ends=(older, newer))
    points = [
        AxisPoint(label=cell.release, cell=cell)
        for version in versions
        for cell in select_cells(f"{version}{suffix}", context.releases)
    ]
    return SearchAxis(name=JAX, points=points, refused=refused)


def _list_versions(
    context: ProjectContext, older: str, newer: str, *, ends: tuple[str, str]
) -> tuple[list[str], Mapping[str, str]]:
    """Return the releases of a range, and of nights that cannot be installed why.

    Args:
        context: The project.
        older: The first of them.
        newer: The last.
        ends: Both ends: where one is a nightly, all nightlies between them count.
    """
    known = context.releases
    first, last = Version(older), Version(newer)
    versions = [text for text in known.versions if first <= Version(text) <= last]
    if not any(map(is_nightly, ends)):
        return versions, {}
    found, refused = find_nights(first, last, known.nightlies)
    # An exact end need not be the one of its day that is listed.
    listed = [*found, *(text for text in ends if is_nightly(text) and text not in found)]
    return sorted([*versions, *listed], key=Version), refused


def _parse_night(text: str) -> str:
    return text if text[:1].isalpha() or not text[:4].isdigit() else f"{NIGHTLY}:{text}"


def _refuse_order(older: str, newer: str, find: str) -> None:
    """Refuse ends that are one, or not in the order to find what is sought."""
    if older == newer:
        raise UsageError(f"--good and --bad are both {older}, expected two")
    if Version(older) < Version(newer):
        return
    if find == "bad":
        raise UsageError(
            f"--good {older} is newer than --bad {newer}; say --find fix to find where it was fixed"
        )
    raise UsageError(f"--good {newer} is older than --bad {older}; leave out --find")
