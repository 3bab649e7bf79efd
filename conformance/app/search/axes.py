"""The axes of a search: releases and nightlies, versions of a package, values of an option."""

from __future__ import annotations

import importlib
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
    from conformance.app.search.options import SearchOptions
    from conformance.cells.cell import Cell

RELEASE_INDEX = "conformance.cells.release_index"


def make_axis(context: ProjectContext, options: SearchOptions, place: str) -> SearchAxis:
    """Return the axis of some options.

    Args:
        context: The project.
        options: The options; the axis `nightly` is `jax` with days for ends.
        place: Platform, empty for the default.

    Raises:
        UsageError: If an end does not exist, or the ends are in the wrong order for `--find`.
        InfrastructureError: If an index does not answer.
    """
    name, find, values = options.axis, options.find, options.values
    older, newer = options.good, options.bad
    # A fix lies between an older bad end and a newer good one; points are always in ascending
    # order.
    if find == "fix":
        older, newer = newer, older
    if name == JAX and newer.startswith(PATH_PREFIX):
        # Only the newer end may be an environment: make_axis_to copies its options to the releases
        # before it.
        (last,) = select_cells(f"{newer}@{place}" if place else newer, context.releases)
        return make_axis_to(context, context.find_release(older), last)
    suffix = f"@{place}" if place else ""
    if name == NIGHTLY:
        name = JAX
        older, newer = (_parse_night(text) for text in (older, newer))
    if name == JAX:
        older, newer = (context.find_release(text) for text in (older, newer))
        _check_order(older, newer, find)
        return _make_release_axis(context, older, newer, suffix)
    # Every other axis varies something within one release of jax.
    (cell,) = select_cells(f"{context.find_release(options.jax)}{suffix}", context.releases)
    if name.startswith((CONFIG, FLAG)):
        named = values.split(",") if values else [older, newer]
        # Values of an option have no order that could be computed: the list of the user is the
        # order.
        if (named[0], named[-1]) != (older, newer):
            raise UsageError(f"--values {values}: expected a list from {older} to {newer}")
        return SearchAxis(name=name, points=make_option_points(cell, name, named))
    # The index and the locks spell names in the canonical form; users write flax, Flax or
    # my_package.
    package = canonicalize_name(name)
    # Imported late: few searches need the client of the index, which takes a fifth of a second.
    index = importlib.import_module(RELEASE_INDEX)
    versions = select_versions(package, index.list_versions(package), (older, newer))
    _check_order(older, newer, find)
    return SearchAxis(name=name, points=make_package_points(cell, package, versions))


def make_axis_to(context: ProjectContext, older: str, last: Cell) -> SearchAxis:
    """Return the releases up to a cell, each with the platform and options of that cell.

    The cell of an existing environment comes after the release that it reports, because its
    code may differ from that release.

    Args:
        context: The project.
        older: The release to begin at, or a nightly.
        last: The cell at the newer end.

    Raises:
        UsageError: If the release is not older than the cell.
        InfrastructureError: If the index of nightlies, or the interpreter of the cell, does not
            serve.
    """
    newest = find_release(last)
    # An environment of the same release is a valid newer end: its files may be edited.
    if Version(older) > Version(newest) or (older == newest and last.interpreter is None):
        raise UsageError(
            f"{older} is not older than {last.id}, which is jax {newest}; expected an older one"
        )
    versions, refused = _list_versions(context, older, newest, ends=(older, last.release))
    points = [AxisPoint(label=text, cell=replace_release(last, text, context)) for text in versions]
    if last.interpreter is not None:
        # The release of such a cell is its `path:` selector, which shows no version.
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
    # The Python stays where it can, so that a release is the only difference between two points.
    python = cell.python if known.get(release).admits(cell.python) else known.find_python(release)
    return replace(cell, release=release, python=python)


def make_upgrade_points(
    context: ProjectContext, ends: tuple[str, str], place: str
) -> list[AxisPoint]:
    """Return both ends of an upgrade, and the releases between them.

    Args:
        context: The project.
        ends: The older and the newer end: each a release, a specifier (the newest release that
            fits), a lock, or `path:` and an interpreter.
        place: Platform.

    Raises:
        UsageError: If an end does not exist, or the newer end comes first.
        InfrastructureError: If the interpreter of an end does not serve.
    """
    first, last = (_make_end(context, text, place) for text in ends)
    if first == last:
        raise UsageError(f"{ends[0]} and {ends[1]} are both {first.label}, expected two")
    older, newer = (Version(find_release(point.cell)) for point in (first, last))
    # Equal versions are allowed: a lock and a plain cell of one release differ in other packages.
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
    # An end that is a plain release is among the known releases, too, and would be tried twice.
    end_cells = (first.cell, last.cell)
    return [first, *(point for point in between if point.cell not in end_cells), last]


def _make_end(context: ProjectContext, text: str, place: str) -> AxisPoint:
    """Return an end of an upgrade: the cell of a lock, or of the newest release of a selector."""
    if Path(text).is_file():
        cell = _find_locked_cell(context, Path(text), place)
        return AxisPoint(label=f"{text} (jax {cell.release})", cell=cell)
    cell = select_cells(f"{text}@{place}", context.releases)[-1]
    if cell.interpreter is None:
        return AxisPoint(label=cell.release, cell=cell)
    return AxisPoint(label=f"{text} (jax {find_release(cell)})", cell=cell)


def _find_locked_cell(context: ProjectContext, file: Path, place: str) -> Cell:
    """Return the cell of a lock: packages that cases import as pinned, others as of the release."""
    pins = read_foreign_pins(file)
    if JAX not in pins:
        raise UsageError(f"{file}: pins no jax, expected one to upgrade")
    (cell,) = select_cells(f"{pins[JAX]}@{place}", context.releases)
    # Pins that equal the era dependencies are dropped, so that the cell shares the id, the
    # environment and the cached results of the plain cell.
    usual = Session(context=context).prepare([cell]).locks
    era = usual[cell.id].pins if cell.id in usual else {}
    own = (
        name for name in ("jaxlib", *IMPORTED_BY_JAX, *context.releases.packages) if name in pins
    )
    return replace(cell, pins=tuple(f"{n}=={pins[n]}" for n in own if era.get(n) != pins[n]))


def find_release(cell: Cell) -> str:
    """Return the version of jax in a cell.

    Args:
        cell: The cell; an existing environment is inspected.

    Raises:
        UsageError: If the environment has no jax.
        InfrastructureError: If its interpreter does not run.
    """
    if cell.interpreter is None:
        return cell.release
    installed = inspect_path_environment(cell.interpreter).packages
    if JAX not in installed:
        raise UsageError(f"{cell.interpreter}: has no jax, expected one")
    return installed[JAX]


def check_nightlies(context: ProjectContext) -> bool:
    """Read the index of nightlies again, and return whether it has any.

    Args:
        context: The project.

    Raises:
        InfrastructureError: If it does not answer.
    """
    find = context.releases.find_nightlies
    # A fresh look-up, not `nightlies`, which is cached: the index may have gone away since.
    return find is not None and bool(find().versions)


def _make_release_axis(context: ProjectContext, older: str, newer: str, suffix: str) -> SearchAxis:
    """Return the releases of a range, with its nightlies if an end is a nightly."""
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
    """Return the releases of a range, and its nightlies that cannot be installed, with the reason.

    Args:
        context: The project.
        older: First version of the range.
        newer: Last version of the range.
        ends: Both ends of the axis: if an end is a nightly, the nightlies of the range count.
    """
    known = context.releases
    first, last = Version(older), Version(newer)
    versions = [text for text in known.versions if first <= Version(text) <= last]
    # Dozens of nightlies lie between two releases, and each trial of one creates an environment.
    if not any(map(is_nightly, ends)):
        return versions, {}
    found, refused = find_nights(first, last, known.nightlies)
    # The index lists one nightly a day, and an exact end may be another build of the same date.
    listed = [*found, *(text for text in ends if is_nightly(text) and text not in found)]
    return sorted([*versions, *listed], key=Version), refused


def _parse_night(text: str) -> str:
    return text if text[:1].isalpha() or not text[:4].isdigit() else f"{NIGHTLY}:{text}"


def _check_order(older: str, newer: str, find: str) -> None:
    """Refuse equal ends, and ends in the wrong order for `--find`."""
    if older == newer:
        raise UsageError(f"--good and --bad are both {older}, expected two")
    if Version(older) < Version(newer):
        return
    if find == "bad":
        raise UsageError(
            f"--good {older} is newer than --bad {newer}; say --find fix to find where it was fixed"
        )
    raise UsageError(f"--good {newer} is older than --bad {older}; leave out --find")
