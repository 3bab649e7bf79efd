"""Shardy's words: meshes, shardings by axis, and what they mean device by device."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, NamedTuple, cast

from conformance.ir.graph import IrSyntaxError, Sharding
from conformance.ir.hlo.lexing import LARGEST, Unexpected
from conformance.ir.hlo.shardings import Axis, Mesh, sharding, tiled, transposed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.ir.graph import Attribute
    from conformance.ir.mlir.scan import Scanner

NOTES = ("open", "priorities", "replicated")
_PRIORITY = re.compile(r"p(\d{1,9})", re.ASCII)
_GSPMD = frozenset({"mhlo.sharding", "mhlo.spmd_output_sharding"})
REPLICATED = Sharding("replicated")


class UndefinedSymbolError(IrSyntaxError):
    """A mesh that the module does not hold."""


class Spread(NamedTuple):
    """A sharding, and what Shardy says besides.

    Attributes:
        sharding: Who holds what.
        notes: `open`: dimensions that may be sharded further; `priorities`: pairs of a dimension
            and its priority; `replicated`: axes that are not to be used.
    """

    sharding: Sharding
    notes: dict[str, tuple[Attribute, ...]]


def mesh(scan: Scanner) -> Mesh:
    """Read `<["x"=2, "y"=4], device_ids=[...]>`; a mesh without axes is one device."""
    scan.expect("<")
    axes = scan.listed("[", "]", lambda: _size(scan))
    devices: list[int] = []
    if scan.accept(","):
        scan.field("device_ids")
        devices = scan.listed("[", "]", scan.integer)
    scan.expect(">")
    try:
        return mesh_from(axes, devices)
    except ValueError as error:
        scan.fail(str(error))


def mesh_from(axes: Iterable[tuple[str, int]], devices: Iterable[int]) -> Mesh:
    """Return a mesh of named axes, over devices counted up if none are named.

    Raises:
        ValueError: If the devices do not fit the axes.
    """
    sizes: dict[str, int] = {}
    for name, size in axes:
        if name in sizes or size < 1:
            raise ValueError("axes of different names, each of at least one device")
        sizes[name] = size
    count = prod(sizes.values())
    if count > LARGEST:
        raise ValueError(f"at most {LARGEST} devices")
    named = tuple(devices)
    if named and len(named) != count:
        raise ValueError(f"{count} devices")
    return Mesh(sizes, named or (tuple(range(count)) if sizes else ()))


def mesh_of(scan: Scanner, meshes: dict[str, Mesh]) -> Mesh:
    """Read `@mesh` or `mesh<...>`."""
    if scan.accept("mesh"):
        return mesh(scan)
    name = scan.symbol()
    if name not in meshes:
        raise UndefinedSymbolError(
            f"stablehlo line {scan.line}: got '@{name}', expected a mesh the module defines"
        )
    return meshes[name]


def spread(scan: Scanner, meshes: dict[str, Mesh]) -> Spread:
    """Read `<@mesh, [{"x"}, {?}], replicated={"y"}, unreduced={"z"}>`."""
    scan.expect("<")
    found = mesh_of(scan, meshes)
    scan.expect(",")
    dimensions, notes = _dimensions(scan)
    named: dict[str, list[Axis]] = {}
    while scan.accept(","):
        kind = scan.word()
        if kind not in {"replicated", "unreduced"} or kind in named:
            scan.fail("'replicated' or 'unreduced'")
        scan.expect("=")
        named[kind] = _axes(scan)[0]
    scan.expect(">")
    if named.get("replicated"):
        notes["replicated"] = tuple(_spelled(axis) for axis in named["replicated"])
    if not found.axes and not any([*dimensions, *named.values()]):
        single = Sharding("maximal", devices=found.devices)
        return Spread(single if found.devices else REPLICATED, notes)
    try:
        found.cut([*dimensions, *named.values()])
        sizes, devices = found.cut([*dimensions, named.get("unreduced", [])])
    except Unexpected as error:
        scan.fail(f"axes of the mesh, each once ({error})")
    return Spread(tiled(sizes, devices, ("unreduced", "replicated")), notes)


def gspmd(text: str) -> Sharding | None:
    """Return the sharding a GSPMD text says, None if it says none that is understood."""
    try:
        found, groups = sharding(text)
    except Unexpected:
        return None
    return None if groups else found


def groups(found: Mesh, axes: list[Axis]) -> tuple[tuple[int, ...], ...]:
    """Return the devices that talk to each other along some axes of a mesh.

    Raises:
        Unexpected: If the axes are not those of the mesh.
    """
    (size, count), devices = found.cut([axes])
    devices = transposed(devices, [size, count], [1, 0])
    return tuple(devices[n : n + size] for n in range(0, len(devices), size))


def axis(scan: Scanner) -> Axis:
    """Read `"x"` or `"x":(2)4`."""
    name = scan.string()
    return part(scan, name) if scan.accept(":") else Axis(name)


def part(scan: Scanner, name: str) -> Axis:
    """Read `(2)4`: the part of size 4 of an axis that has parts of size 2 before it."""
    scan.expect("(")
    before = scan.integer()
    scan.expect(")")
    size = scan.integer()
    if before < 1 or size < 1:
        scan.fail("a part of the axis")
    return Axis(name, before, size)


def put(found: dict[str, Attribute], name: str, value: object) -> None:
    """Put an attribute into a dictionary, beside it what Shardy notes on a sharding.

    A GSPMD text becomes the sharding that it means.
    """
    found[name] = meant = plain(value)
    if isinstance(value, Spread):
        for kind, note in value.notes.items():
            found[f"{name} {kind}"] = note
    elif isinstance(value, tuple) and value and isinstance(value[0], Spread):
        for kind in NOTES:
            notes = tuple(one.notes.get(kind, ()) for one in value)
            if any(notes):
                found[f"{name} {kind}"] = notes
    elif name in _GSPMD and isinstance(meant, str):
        sharded = gspmd(meant)
        found[name] = meant if sharded is None else sharded


def plain(value: object) -> Attribute:
    """Return a value without what Shardy notes on it."""
    if isinstance(value, Spread):
        return value.sharding
    if isinstance(value, tuple) and value and isinstance(value[0], Spread):
        return tuple([one.sharding for one in value])
    return cast("Attribute", value)


def _size(scan: Scanner) -> tuple[str, int]:
    """Read `"x"=2`."""
    name = scan.string()
    scan.expect("=")
    return name, scan.integer()


def _axes(scan: Scanner) -> tuple[list[Axis], bool]:
    """Read `{"x", "y":(1)2, ?}`; say also whether it is open."""
    found = scan.listed("{", "}", lambda: None if scan.accept("?") else axis(scan))
    if None in found[:-1]:
        scan.fail("'?' as the last, before it")
    return [one for one in found if one is not None], None in found


def _dimension(scan: Scanner) -> tuple[list[Axis], bool, int | None]:
    """Read `{"x", ?}p1`; the last is the priority."""
    axes, is_open = _axes(scan)
    priority = _PRIORITY.fullmatch(scan.next)
    if priority is not None:
        scan.advance()
    return axes, is_open, None if priority is None else int(priority[1])


def _dimensions(scan: Scanner) -> tuple[list[list[Axis]], dict[str, tuple[Attribute, ...]]]:
    found = scan.listed("[", "]", lambda: _dimension(scan))
    open_ = tuple([n for n, (_, is_open, _) in enumerate(found) if is_open])
    priorities = tuple([(n, p) for n, (_, _, p) in enumerate(found) if p is not None])
    notes: dict[str, tuple[Attribute, ...]] = {"open": open_, "priorities": priorities}
    return [axes for axes, _, _ in found], {kind: note for kind, note in notes.items() if note}


def _spelled(one: Axis) -> str:
    return f"{one.name}:({one.before}){one.size}" if one.size else one.name
