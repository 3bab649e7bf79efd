"""Matrices: named sets of cells, read from files as axes, exclusions and inclusions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from conformance.cells.cell import Cell
from conformance.cells.selectors import matches_selector, resolve_releases
from conformance.errors import InfrastructureError, UsageError
from conformance.files import MALFORMED, describe_os_error
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.cells.releases import Releases


@dataclass(frozen=True, slots=True, kw_only=True)
class _Axis:
    """An axis: the type of its list of values, that type in words, and its default."""

    type: Any
    words: str
    default: tuple[Any, ...]
    nested: bool = False


AXES: Mapping[str, _Axis] = {
    "jax": _Axis(type=tuple[str, ...], words="selectors, e.g. ['0.6.2', '>=0.8']", default=()),
    "python": _Axis(type=tuple[str, ...], words="Pythons, e.g. ['3.11']", default=()),
    "platform": _Axis(type=tuple[str, ...], words="platforms, e.g. ['cpu']", default=("cpu",)),
    "devices": _Axis(
        type=tuple[Annotated[int, msgspec.Meta(ge=1)], ...],
        words="device counts, e.g. [8]",
        default=(0,),
    ),
    "deps": _Axis(type=tuple[str, ...], words="'era' or 'latest'", default=("era",)),
    "pins": _Axis(
        type=tuple[tuple[str, ...], ...],
        words="lists of pins, e.g. [[], ['numpy==2.0.2']]",
        default=((),),
        nested=True,
    ),
    "x64": _Axis(type=tuple[bool, ...], words="booleans, e.g. [false, true]", default=(False,)),
    "config": _Axis(
        type=tuple[dict[str, str | bool | int | float], ...],
        words="tables of jax.config values, e.g. [{}, {jax_enable_checks = true}]",
        default=({},),
    ),
    "xla_flags": _Axis(
        type=tuple[tuple[str, ...], ...],
        words="lists of flags, e.g. [[], ['--xla_name=value']]",
        default=((),),
        nested=True,
    ),
}
_OPTIONS = tuple(name for name in AXES if name not in {"jax", "python"})
# `releases.toml` is the matrix `releases` and the table of releases in one.
_TOP_LEVEL = ("matrix", "packages", "release", "yanked")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionRule:
    """Cells to leave out.

    Attributes:
        only: Values by axis; a cell is left out when it has one of them on every axis named.
        reason: Why.
    """

    only: Mapping[str, tuple[Any, ...]]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFile:
    """A matrix file as written.

    Attributes:
        axes: Values of every axis; their product makes the cells.
        exclude: Cells left out of the product.
        include: Further products.
    """

    axes: Mapping[str, tuple[Any, ...]]
    exclude: tuple[ExclusionRule, ...] = ()
    include: tuple[Mapping[str, tuple[Any, ...]], ...] = field(default=())


def read_matrix_file(path: Path) -> MatrixFile:
    """Read a matrix file.

    Args:
        path: The file.

    Returns:
        Its content, checked, every axis a tuple of values.

    Raises:
        UsageError: If it is not a matrix; the message names file and key, got and expected.
        InfrastructureError: If it cannot be read.
    """
    try:
        content = msgspec.toml.decode(path.read_bytes())
    except OSError as error:
        raise InfrastructureError(f"{path}: cannot read: {describe_os_error(error)}") from error
    except MALFORMED as error:
        raise UsageError(f"{path}: not TOML: {error}") from error
    try:
        return _matrix(content)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def _matrix(content: dict[str, Any]) -> MatrixFile:
    _check_keys("", content, _TOP_LEVEL)
    matrix = _convert("matrix", content.get("matrix"), dict[str, Any], "a table [matrix]")
    _check_keys("matrix.", matrix, ("axes", "exclude", "include"))
    return MatrixFile(
        axes=_product("matrix.axes", matrix.get("axes")),
        exclude=tuple(_exclusion(where, entry) for where, entry in _entries(matrix, "exclude")),
        include=tuple(_product(where, entry) for where, entry in _entries(matrix, "include")),
    )


def _entries(matrix: Mapping[str, Any], key: str) -> Iterable[tuple[str, Any]]:
    where = f"matrix.{key}"
    entries = _convert(where, matrix.get(key, []), list[Any], "a list of tables")
    return [(f"{where}[{index}]", entry) for index, entry in enumerate(entries)]


def _product(where: str, table: object) -> Mapping[str, tuple[Any, ...]]:
    given = _axes(where, table)
    if "jax" not in given:
        raise UsageError(f"{where}: no jax in it, expected a list of {AXES['jax'].words}")
    return {name: given.get(name, axis.default) for name, axis in AXES.items()}


def _exclusion(where: str, table: object) -> ExclusionRule:
    entry = dict(_convert(where, table, dict[str, Any], "a table"))
    words = "why these cells are left out"
    reason = _convert(f"{where}.reason", entry.pop("reason", None), str, words)
    if not reason.strip():
        raise UsageError(f"{where}.reason: got {reason!r}, expected {words}")
    return ExclusionRule(only=_axes(where, entry, also=("reason",)), reason=reason)


def _axes(where: str, table: object, also: tuple[str, ...] = ()) -> dict[str, tuple[Any, ...]]:
    """Return the axes a table names; one value may stand without its list."""
    entry = _convert(where, table, dict[str, Any], "a table of axes")
    _check_keys(f"{where}.", entry, (*AXES, *also))
    return {name: _axis(f"{where}.{name}", AXES[name], value) for name, value in entry.items()}


def _axis(where: str, axis: _Axis, value: Any) -> tuple[Any, ...]:
    listed = isinstance(value, list)
    if axis.nested:
        listed = listed and bool(value) and all(isinstance(item, list) for item in value)
    values: tuple[Any, ...] = _convert(where, value if listed else [value], axis.type, axis.words)
    if not values:
        raise UsageError(f"{where}: got an empty list, expected {axis.words}")
    return tuple(map(_as_text, values)) if axis is AXES["config"] else values


def _as_text(config: Mapping[str, Any]) -> dict[str, str]:
    """Return config values as the text a cell id shows: booleans in lower case."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in config.items()
    }


def _convert(where: str, value: Any, kind: Any, words: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        got = "nothing" if value is None else repr(value)
        raise UsageError(f"{where}: got {got}, expected {words}") from error


def _check_keys(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise UsageError(
                f"{where}{key}: unknown key{did_you_mean(key, known)}; expected {', '.join(known)}"
            )


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
    found = [resolve_releases(selector, releases) for selector in selectors]
    named = dict(itertools.chain.from_iterable(found))
    in_order = [version for version in releases.versions if version in named]
    others = sorted(named.keys() - releases.versions)
    return [(release, named[release]) for release in (*in_order, *others)]


def _exclude(
    cells: list[Cell], exclude: Sequence[ExclusionRule], releases: Releases
) -> tuple[list[CellExclusion], list[Cell]]:
    excluded, kept = [], []
    for cell in cells:
        reasons = [
            rule.reason
            for rule in exclude
            if all(_has_one_of(cell, axis, values, releases) for axis, values in rule.only.items())
        ]
        if reasons:
            excluded.append(CellExclusion(cell=cell.id, reason="; ".join(reasons)))
        else:
            kept.append(cell)
    return excluded, kept


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
