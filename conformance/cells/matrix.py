"""Matrix files: named sets of cells as axes, exclusions and inclusions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformance.cells.cell import Cell
from conformance.cells.matrix_file import AXES, ExclusionRule, read_matrix_file
from conformance.cells.selectors import matches_selector, named_releases
from conformance.cells.suggestions import did_you_mean
from conformance.errors import InfrastructureError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.cells.releases import Releases

_OPTIONS = tuple(name for name in AXES if name not in {"jax", "python"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CellExclusion:
    """A cell that a matrix names and that is not run.

    Attributes:
        cell: Id of the cell.
        reason: Why.
    """

    cell: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A named set of cells.

    Attributes:
        name: Stem of its file.
        path: The file.
        cells: Its cells, oldest release first, each once.
        exclusions: Cells left out, each with the reason.
    """

    name: str
    path: Path
    cells: tuple[Cell, ...]
    exclusions: tuple[CellExclusion, ...]


def matrix_names(folders: Sequence[Path]) -> tuple[str, ...]:
    """Return the names of the matrices in some folders, sorted."""
    return tuple(sorted({file.stem for folder in folders for file in folder.glob("*.toml")}))


def load_matrix(name_or_path: str, folders: Sequence[Path], releases: Releases) -> Matrix:
    """Read a matrix and expand it into cells.

    Args:
        name_or_path: Name of a matrix in one of the folders, or path of a matrix file.
        folders: Matrix folders; the first that has the name wins.
        releases: Known releases.

    Returns:
        The matrix; cells whose Python the release does not admit are among its exclusions.

    Raises:
        UsageError: If there is no such matrix, or its file is not as it must be.
        InfrastructureError: If the interpreter of a `path:` release does not serve. An index of
            nightlies that does not answer is none: its cells are told by their selector.
    """
    path = _find(name_or_path, folders)
    entry = read_matrix_file(path)
    try:
        cells = list(_expand(entry.axes, releases))
        excluded, kept = _exclude(cells, entry.exclude, releases)
        for axes in entry.include:
            kept.extend(_expand(axes, releases))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    refused = {cell: reason for cell in kept if (reason := _refusal(cell, releases))}
    excluded.extend(CellExclusion(cell=cell.id, reason=why) for cell, why in refused.items())
    return Matrix(
        name=path.stem,
        path=path,
        cells=tuple(dict.fromkeys(cell for cell in kept if cell not in refused)),
        exclusions=tuple(dict.fromkeys(excluded)),
    )


def _find(name_or_path: str, folders: Sequence[Path]) -> Path:
    path = Path(name_or_path)
    if path.suffix == ".toml" or len(path.parts) > 1:
        if path.is_file():
            return path
        raise UsageError(f"matrix file {name_or_path!r}: no such file")
    for folder in folders:
        file = folder / f"{name_or_path}.toml"
        if file.is_file():
            return file
    names = matrix_names(folders)
    raise UsageError(
        f"unknown matrix {name_or_path!r}{did_you_mean(name_or_path, names)}; "
        f"expected one of {', '.join(names) or '(none found)'}, or the path of a .toml file"
    )


def _expand(axes: Mapping[str, tuple[Any, ...]], releases: Releases) -> Iterator[Cell]:
    for release, own in _named_releases(axes["jax"], releases):
        pythons = axes["python"] or (own,)
        for python, *values in itertools.product(pythons, *(axes[name] for name in _OPTIONS)):
            fields = dict(zip(_OPTIONS, values, strict=True))
            fields["config"] = tuple(fields["config"].items())
            yield Cell(release=release, python=python, **fields)


def _named_releases(selectors: Sequence[str], releases: Releases) -> list[tuple[str, str]]:
    """Return releases, the oldest first, each with its Python."""
    found = [named_releases(selector, releases) for selector in selectors]
    named = dict(itertools.chain.from_iterable(found))
    in_order = [version for version in releases.versions if version in named]
    others = sorted(named.keys() - releases.versions)
    return [(release, named[release]) for release in (*in_order, *others)]


def _exclude(
    cells: list[Cell], exclude: Sequence[ExclusionRule], releases: Releases
) -> tuple[list[CellExclusion], list[Cell]]:
    excluded, kept = [], []
    for cell in cells:
        reasons = [entry.reason for entry in exclude if _matches(entry, cell, releases)]
        if reasons:
            excluded.append(CellExclusion(cell=cell.id, reason="; ".join(reasons)))
        else:
            kept.append(cell)
    return excluded, kept


def _matches(entry: ExclusionRule, cell: Cell, releases: Releases) -> bool:
    return all(_has_one_of(cell, axis, values, releases) for axis, values in entry.only.items())


def _has_one_of(cell: Cell, axis: str, values: Sequence[Any], releases: Releases) -> bool:
    if axis == "jax":
        return any(_is_meant(text, cell.release, releases) for text in values)
    value = getattr(cell, axis)
    return (dict(value) if axis == "config" else value) in values


def _is_meant(selector: str, release: str, releases: Releases) -> bool:
    try:
        return matches_selector(selector, release, releases)
    except InfrastructureError:  # which nightly is meant cannot be known now
        return False


def _refusal(cell: Cell, releases: Releases) -> str:
    if cell.interpreter is not None or cell.is_unresolved:
        return ""
    try:
        release = releases.get(cell.release)
    except InfrastructureError:  # of a nightly: whoever looks for its lock is told
        return ""
    if release.admits(cell.python):
        return ""
    pythons = ", ".join(filter(release.admits, release.pythons))
    return f"jax {release.version} has no wheels for python {cell.python}, only for {pythons}"
