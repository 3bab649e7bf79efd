"""Matrices: named sets of cells, read from files as axes, exclusions and inclusions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec

from conformance.cells.cell import Cell
from conformance.cells.selectors import matches_selector, resolve_releases
from conformance.errors import InfrastructureError, UsageError
from conformance.files import MALFORMED, describe_os_error
from conformance.model.run import Exclusion
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.cells.releases import Releases

AxisValues: TypeAlias = "Mapping[str, tuple[Any, ...]]"
"""Values by axis; their product is a set of cells."""


class _Axis(NamedTuple):
    """An axis: the type of its list of values, that type in words, and its default."""

    type: Any
    words: str
    default: tuple[Any, ...]
    nested: bool = False


AXES: Final[Mapping[str, _Axis]] = {
    "jax": _Axis(tuple[str, ...], "selectors, e.g. ['0.6.2', '>=0.8']", ()),
    "python": _Axis(tuple[str, ...], "Pythons, e.g. ['3.11']", ()),
    "platform": _Axis(tuple[str, ...], "platforms, e.g. ['cpu']", ("cpu",)),
    "devices": _Axis(
        tuple[Annotated[int, msgspec.Meta(ge=1)], ...], "device counts, e.g. [8]", (0,)
    ),
    "deps": _Axis(tuple[str, ...], "'era' or 'latest'", ("era",)),
    "pins": _Axis(
        tuple[tuple[str, ...], ...],
        "lists of pins, e.g. [[], ['numpy==2.0.2']]",
        ((),),
        nested=True,
    ),
    "x64": _Axis(tuple[bool, ...], "booleans, e.g. [false, true]", (False,)),
    "config": _Axis(
        tuple[dict[str, str | bool | int | float], ...],
        "tables of jax.config values, e.g. [{}, {jax_enable_checks = true}]",
        ({},),
    ),
    "xla_flags": _Axis(
        tuple[tuple[str, ...], ...],
        "lists of flags, e.g. [[], ['--xla_name=value']]",
        ((),),
        nested=True,
    ),
}
# `python` is apart: by default it is that of the release, not the same for all cells.
_OPTIONS: Final = tuple(name for name in AXES if name not in {"jax", "python"})
# `releases.toml` is both the matrix `releases` and the table of releases.
_TOP_LEVEL: Final = ("matrix", "packages", "release", "yanked")


class _ExclusionRule(NamedTuple):
    """Cells to exclude: those with a listed value on every listed axis."""

    axes: AxisValues
    reason: str


class _MatrixFile(NamedTuple):
    """The content of a matrix file: a product of axes, and changes of it."""

    axes: AxisValues
    exclude: tuple[_ExclusionRule, ...]
    include: tuple[AxisValues, ...]


def _read_file(path: Path) -> _MatrixFile:
    try:
        content = msgspec.toml.decode(path.read_bytes())
    except OSError as error:
        raise InfrastructureError(f"{path}: cannot read: {describe_os_error(error)}") from error
    except MALFORMED as error:
        raise UsageError(f"not TOML: {error}") from error
    _check_keys("", content, _TOP_LEVEL)
    matrix = _convert("matrix", content.get("matrix"), dict[str, Any], "a table [matrix]")
    _check_keys("matrix.", matrix, ("axes", "exclude", "include"))
    return _MatrixFile(
        axes=_parse_product("matrix.axes", matrix.get("axes")),
        exclude=tuple(itertools.starmap(_parse_rule, _list_tables(matrix, "exclude"))),
        include=tuple(itertools.starmap(_parse_product, _list_tables(matrix, "include"))),
    )


def _list_tables(matrix: Mapping[str, Any], key: str) -> Iterable[tuple[str, Any]]:
    where = f"matrix.{key}"
    tables = _convert(where, matrix.get(key, []), list[Any], "a list of tables")
    return [(f"{where}[{index}]", table) for index, table in enumerate(tables)]


def _parse_product(where: str, table: object) -> AxisValues:
    values = _parse_axes(where, table)
    # The only axis without a default: `latest` would change the matrix with each release.
    if "jax" not in values:
        raise UsageError(f"{where}: no jax in it, expected a list of {AXES['jax'].words}")
    return {name: values.get(name, axis.default) for name, axis in AXES.items()}


def _parse_rule(where: str, table: object) -> _ExclusionRule:
    entry = dict(_convert(where, table, dict[str, Any], "a table"))
    words = "why these cells are left out"
    reason = _convert(f"{where}.reason", entry.pop("reason", None), str, words)
    if not reason.strip():
        raise UsageError(f"{where}.reason: got {reason!r}, expected {words}")
    return _ExclusionRule(_parse_axes(where, entry, also=("reason",)), reason)


def _parse_axes(where: str, table: object, also: tuple[str, ...] = ()) -> AxisValues:
    entry = _convert(where, table, dict[str, Any], "a table of axes")
    _check_keys(f"{where}.", entry, (*AXES, *also))
    return {name: _parse_axis(f"{where}.{name}", AXES[name], entry[name]) for name in entry}


def _parse_axis(where: str, axis: _Axis, value: Any) -> tuple[Any, ...]:
    # A single value needs no list around it; on a nested axis the value is itself a list.
    is_list = isinstance(value, list)
    if axis.nested:
        is_list = is_list and bool(value) and all(isinstance(item, list) for item in value)
    values: tuple[Any, ...] = _convert(where, value if is_list else [value], axis.type, axis.words)
    if not values:
        raise UsageError(f"{where}: got an empty list, expected {axis.words}")
    if axis is not AXES["config"]:
        return values
    # Config values are texts as in a cell id: booleans in lower case.
    return tuple(
        {
            name: str(value).lower() if isinstance(value, bool) else str(value)
            for name, value in config.items()
        }
        for config in values
    )


def _convert(where: str, value: Any, kind: Any, words: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        found = "nothing" if value is None else repr(value)
        raise UsageError(f"{where}: got {found}, expected {words}") from error


def _check_keys(where: str, table: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            raise UsageError(
                f"{where}{key}: unknown key{did_you_mean(key, known)}; expected {', '.join(known)}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A named set of cells.

    Attributes:
        name: Stem of its file.
        path: Matrix file.
        cells: Distinct cells, oldest release first.
        exclusions: Excluded cells with their reasons.
    """

    name: str
    path: Path
    cells: tuple[Cell, ...]
    exclusions: tuple[Exclusion, ...]


def list_matrices(folders: Sequence[Path]) -> tuple[str, ...]:
    """Return the sorted names of the matrices in some folders."""
    return tuple(sorted({file.stem for folder in folders for file in folder.glob("*.toml")}))


def load_matrix(name_or_path: str, folders: Sequence[Path], releases: Releases) -> Matrix:
    """Read a matrix and expand it into cells.

    Args:
        name_or_path: Name of a matrix in one of the folders, or path of a matrix file.
        folders: Matrix folders; the first one with the name is used.
        releases: Known releases.

    Returns:
        The matrix. Cells whose Python the release does not admit are among its exclusions. If the
        index of nightlies does not answer, cells of nightlies keep their selectors.

    Raises:
        UsageError: If there is no such matrix, or its file is not valid.
        InfrastructureError: If the file cannot be read, or the interpreter of a `path:` release
            does not run.
    """
    path = _find_file(name_or_path, folders)
    excluded: list[Exclusion] = []
    cells: list[Cell] = []
    try:
        file = _read_file(path)
        for cell in _expand(file.axes, releases):
            reasons = [rule.reason for rule in file.exclude if _applies(rule, cell, releases)]
            if reasons:
                excluded.append(Exclusion(case="", cell=cell.id, reason="; ".join(reasons)))
            else:
                cells.append(cell)
        # After the exclusions, which do not apply: an inclusion is an exception to them.
        for axes in file.include:
            cells.extend(_expand(axes, releases))
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error
    unsupported = {cell: reason for cell in cells if (reason := _check_python(cell, releases))}
    excluded.extend(
        Exclusion(case="", cell=cell.id, reason=reason) for cell, reason in unsupported.items()
    )
    return Matrix(
        name=path.stem,
        path=path,
        # Not a set: the order of cells is the order of jobs and reports.
        cells=tuple(dict.fromkeys(cell for cell in cells if cell not in unsupported)),
        exclusions=tuple(dict.fromkeys(excluded)),
    )


def _find_file(name_or_path: str, folders: Sequence[Path]) -> Path:
    path = Path(name_or_path)
    if path.suffix == ".toml" or len(path.parts) > 1:
        if path.is_file():
            return path
        raise UsageError(f"matrix file {name_or_path!r}: no such file")
    for folder in folders:
        file = folder / f"{name_or_path}.toml"
        if file.is_file():
            return file
    names = list_matrices(folders)
    raise UsageError(
        f"unknown matrix {name_or_path!r}{did_you_mean(name_or_path, names)}; "
        f"expected one of {', '.join(names) or '(none found)'}, or the path of a .toml file"
    )


def _expand(axes: AxisValues, releases: Releases) -> Iterator[Cell]:
    selected = dict(
        itertools.chain.from_iterable(resolve_releases(text, releases) for text in axes["jax"])
    )
    known = [version for version in releases.versions if version in selected]
    # Nightlies and `path:` releases are not in the table: they come after all releases.
    others = sorted(selected.keys() - releases.versions)
    for release in (*known, *others):
        pythons = axes["python"] or (selected[release],)
        for python, *values in itertools.product(pythons, *(axes[name] for name in _OPTIONS)):
            fields = dict(zip(_OPTIONS, values, strict=True))
            fields["config"] = tuple(fields["config"].items())
            yield Cell(release=release, python=python, **fields)


def _applies(rule: _ExclusionRule, cell: Cell, releases: Releases) -> bool:
    for axis, values in rule.axes.items():
        if axis == "jax":
            has_value = any(_selects(text, cell.release, releases) for text in values)
        elif axis == "config":
            has_value = dict(cell.config) in values
        else:
            has_value = getattr(cell, axis) in values
        if not has_value:
            return False
    return True


def _selects(selector: str, release: str, releases: Releases) -> bool:
    try:
        return matches_selector(selector, release, releases)
    except InfrastructureError:  # the index of nightlies does not answer
        return False


def _check_python(cell: Cell, releases: Releases) -> str:
    """Return why a cell's release does not admit its Python, empty if it does."""
    if cell.interpreter is not None or cell.is_unresolved:
        return ""
    try:
        release = releases.get(cell.release)
    except InfrastructureError:  # of a nightly: reported when the cell's lock is looked up
        return ""
    if release.admits(cell.python):
        return ""
    pythons = ", ".join(filter(release.admits, release.pythons))
    return f"jax {release.version} has no wheels for python {cell.python}, only for {pythons}"
