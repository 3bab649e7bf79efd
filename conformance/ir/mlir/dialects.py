"""Attributes of the dialects of jax's modules: stablehlo, mhlo, chlo, sdy.

Two spellings are this package's, for values whose original text is lost:
`#conformance.sharding<"tiled", [4, 1], [0, 1, 2, 3], []>` is a sharding device by device,
`#conformance.text<"sha256:... of 2000 elements">` the text of a constant.
"""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from conformance.ir.graph import IrSyntaxError, Sharding
from conformance.ir.hlo.lexing import LARGEST, HloTextError
from conformance.ir.hlo.shardings import Mesh, MeshAxis, make_tiled, read_sharding, transpose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conformance.ir.graph import Attribute
    from conformance.ir.mlir.scan import Scanner

# Dialects whose enumerations and structures follow a common grammar.
_PLAIN = frozenset({"#stablehlo", "#mhlo", "#chlo", "#vhlo", "#sdy"})
# Attributes kept as text, such as `<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>`.
_TEXTS = ("#sdy.op_sharding_rule", "#stablehlo.conv", "#mhlo.conv")
SHARDING = "#conformance.sharding"
TEXT = "#conformance.text"
_SPACE = re.compile(r"\s+")
NOTES = ("open", "priorities", "replicated")
_PRIORITY = re.compile(r"p(\d{1,9})", re.ASCII)
# Attributes of jax before Shardy (to 0.6.2), and of the GSPMD calls within later modules.
_GSPMD = frozenset({"mhlo.sharding", "mhlo.spmd_output_sharding"})
REPLICATED = Sharding("replicated")


class UndefinedSymbolError(IrSyntaxError):
    """An error: the module does not define a mesh that it refers to."""


class ShardySharding(NamedTuple):
    """A sharding with Shardy's notes for its propagation.

    Attributes:
        sharding: The sharding.
        notes: `open`: dimensions that may be sharded further; `priorities`: pairs of a dimension
            and its priority; `replicated`: axes that must not be used.
    """

    sharding: Sharding
    notes: dict[str, tuple[Attribute, ...]]


class Dialects:
    """Reads the angle brackets of a dialect's attribute.

    Args:
        meshes: The meshes of the module by name; filled before the module is read.
        value: Reads a nested attribute.
    """

    def __init__(self, meshes: dict[str, Mesh], value: Callable[[Scanner], Attribute]) -> None:
        self._meshes = meshes
        self._value = value
        self._by_name: dict[str, Callable[[Scanner], object]] = {
            "#sdy.sharding": lambda scan: _read_shardy_sharding(scan, meshes),
            "#sdy.sharding_per_value": self._read_shardy_shardings,
            "#sdy.mesh": self._read_mesh_attribute,
            **dict.fromkeys(_TEXTS, lambda scan: _SPACE.sub(" ", scan.read_brackets().strip())),
            "#stablehlo.replica_group_mesh_axes": self._read_groups,
            "#stablehlo.axis_ref": self._read_axis,
            SHARDING: _read_own_sharding,
            TEXT: self._read_own_text,
        }

    def read(self, name: str, scan: Scanner) -> object:
        """Return the value of an attribute.

        Args:
            name: Name of the attribute, e.g. `#stablehlo.dot`.
            scan: Scanner at the angle bracket that follows.

        Raises:
            IrSyntaxError: If its grammar is unknown.
        """
        special = self._by_name.get(name)
        if special is not None:
            return special(scan)
        # A dialect of another project may use the same grammar with another meaning.
        if name.partition(".")[0] not in _PLAIN:
            scan.fail("an attribute of a known dialect")
        scan.expect("<")
        found = self._read_fields(scan)
        scan.expect(">")
        return found

    def _read_fields(self, scan: Scanner) -> Attribute:
        """Read `LT`, `transpose NO`, `manual_axes{"x"}`, `axis_ref"x"` or `a = 1, b = [2]`."""
        if scan.next == ">":
            return ()
        name = scan.read_word()
        if scan.next == ">":
            return name
        if scan.next == "{":
            return tuple(scan.read_list("{", "}", scan.read_string))
        if scan.next[:1] == '"':
            return tuple(_read_axis(scan))
        # The kind before the word repeats the name of the attribute: `<transpose NO>`.
        if scan.next != "=":
            return scan.read_word()
        found: dict[str, Attribute] = {}
        while True:
            scan.expect("=")
            if name in found:
                scan.fail(f"'{name}' once")
            found[name] = self._value(scan)
            if not scan.accept(","):
                return tuple(sorted(found.items()))
            name = scan.read_word()

    def _read_shardy_shardings(self, scan: Scanner) -> tuple[ShardySharding, ...]:
        scan.expect("<")
        found = scan.read_list("[", "]", lambda: _read_shardy_sharding(scan, self._meshes))
        scan.expect(">")
        return tuple(found)

    def _read_own_text(self, scan: Scanner) -> str:
        scan.expect("<")
        found = scan.read_string()
        scan.expect(">")
        return found

    def _read_mesh_attribute(self, scan: Scanner) -> Attribute:
        mesh = _read_mesh(scan)
        return (("axes", tuple(mesh.axes.items())), ("device_ids", mesh.devices))

    def _read_groups(self, scan: Scanner) -> Attribute:
        """Read `<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>`: groups of devices."""
        scan.expect("<")
        scan.expect_field("mesh_name" if scan.next == "mesh_name" else "mesh")
        mesh = (
            self._read_inline_mesh(scan)
            if scan.next[:1] == "#"
            else _read_mesh_of(scan, self._meshes)
        )
        scan.expect(",")
        scan.expect_field("axes")
        axes = cast("Any", self._value(scan))
        scan.expect(">")
        # Groups by axes appear in StableHLO of 0.12.0.1; earlier releases list devices.
        try:
            named = [MeshAxis(axis) if isinstance(axis, str) else MeshAxis(*axis) for axis in axes]
            (size, count), devices = mesh.cut([named])
            # A group shares its coordinates on all other axes, so these come first.
            devices = transpose(devices, [size, count], [1, 0])
            return tuple([devices[n : n + size] for n in range(0, len(devices), size)])
        except (HloTextError, TypeError) as error:
            scan.fail(f"axes of the mesh ({error})")

    def _read_inline_mesh(self, scan: Scanner) -> Mesh:
        """Read `#stablehlo.mesh<axes = [...]>` or `#sdy.mesh<["x"=2]>` as a mesh."""
        try:
            fields: dict[str, Any] = dict(cast("Any", self._value(scan)))
            axes = [
                axis if isinstance(axis[0], str) else tuple([value for _, value in axis])
                for axis in fields["axes"]
            ]
            return _make_mesh(axes, fields.get("device_ids", ()))
        except (KeyError, TypeError, ValueError, IndexError):
            scan.fail("a mesh before it")

    def _read_axis(self, scan: Scanner) -> Attribute:
        """Read `<name = "x", sub_axis_info = (1)2>`: name, and which part of the axis."""
        scan.expect("<")
        scan.expect_field("name")
        axis = MeshAxis(scan.read_string())
        if scan.accept(","):
            scan.expect_field("sub_axis_info")
            axis = _read_part(scan, axis.name)
        scan.expect(">")
        return tuple(axis)


def _read_own_sharding(scan: Scanner) -> Sharding:
    """Read `<"kind", [tiles], [devices], ["subgroups"], <parts>...>`."""
    # Shardings of tuples nest without a list, so their depth is counted here.
    scan.enter()
    scan.expect("<")
    kind = scan.read_string()
    scan.expect(",")
    tiles = scan.read_list("[", "]", scan.read_integer)
    scan.expect(",")
    devices = scan.read_list("[", "]", scan.read_integer)
    scan.expect(",")
    subgroups = scan.read_list("[", "]", scan.read_string)
    parts = []
    while scan.accept(","):
        parts.append(_read_own_sharding(scan))
    scan.expect(">")
    scan.leave()
    return Sharding(kind, tuple(tiles), tuple(devices), tuple(subgroups), tuple(parts))


def _read_mesh(scan: Scanner) -> Mesh:
    """Read `<["x"=2, "y"=4], device_ids=[...]>`; a mesh without axes is one device."""
    scan.expect("<")
    axes = scan.read_list("[", "]", lambda: _read_size(scan))
    devices: list[int] = []
    if scan.accept(","):
        scan.expect_field("device_ids")
        devices = scan.read_list("[", "]", scan.read_integer)
    scan.expect(">")
    try:
        return _make_mesh(axes, devices)
    except ValueError as error:
        scan.fail(str(error))


def _make_mesh(axes: Iterable[tuple[str, int]], devices: Iterable[int]) -> Mesh:
    """Return a mesh of named axes, over consecutive devices by default.

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


def _read_mesh_of(scan: Scanner, meshes: dict[str, Mesh]) -> Mesh:
    """Read `@mesh` or `mesh<...>`."""
    if scan.accept("mesh"):
        return _read_mesh(scan)
    name = scan.read_symbol()
    if name not in meshes:
        raise UndefinedSymbolError(
            f"stablehlo line {scan.line}: got '@{name}', expected a mesh the module defines"
        )
    return meshes[name]


def _read_shardy_sharding(scan: Scanner, meshes: dict[str, Mesh]) -> ShardySharding:
    """Read `<@mesh, [{"x"}, {?}], replicated={"y"}, unreduced={"z"}>`."""
    scan.expect("<")
    found = _read_mesh_of(scan, meshes)
    scan.expect(",")
    dimensions, notes = _read_dimensions(scan)
    named: dict[str, list[MeshAxis]] = {}
    while scan.accept(","):
        kind = scan.read_word()
        if kind not in {"replicated", "unreduced"} or kind in named:
            scan.fail("'replicated' or 'unreduced'")
        scan.expect("=")
        named[kind] = _read_axes(scan)[0]
    scan.expect(">")
    if named.get("replicated"):
        notes["replicated"] = tuple(
            [f"{x.name}:({x.before}){x.size}" if x.size else x.name for x in named["replicated"]]
        )
    # A mesh without axes is a single device, or a placeholder without any device.
    if not found.axes and not any([*dimensions, *named.values()]):
        single = Sharding("maximal", devices=found.devices)
        return ShardySharding(single if found.devices else REPLICATED, notes)
    try:
        # This call only checks that each axis occurs once; replicated axes need no dimension.
        found.cut([*dimensions, *named.values()])
        sizes, devices = found.cut([*dimensions, named.get("unreduced", [])])
    except HloTextError as error:
        scan.fail(f"axes of the mesh, each once ({error})")
    return ShardySharding(make_tiled(sizes, devices, ("unreduced", "replicated")), notes)


def _read_gspmd(text: str) -> Sharding | None:
    """Return the sharding of a GSPMD text, None if it is not understood."""
    try:
        found, groups = read_sharding(text)
    except HloTextError:
        return None
    # A `Sharding` cannot hold shard groups, so such a text stays a text.
    return None if groups else found


def _read_axis(scan: Scanner) -> MeshAxis:
    """Read `"x"` or `"x":(2)4`."""
    name = scan.read_string()
    return _read_part(scan, name) if scan.accept(":") else MeshAxis(name)


def _read_part(scan: Scanner, name: str) -> MeshAxis:
    """Read `(2)4`: the part of size 4 of an axis that has parts of size 2 before it."""
    scan.expect("(")
    before = scan.read_integer()
    scan.expect(")")
    size = scan.read_integer()
    if before < 1 or size < 1:
        scan.fail("a part of the axis")
    return MeshAxis(name, before, size)


def put_attribute(found: dict[str, Attribute], name: str, value: object) -> None:
    """Put an attribute into a dictionary, and the notes of a sharding under further names.

    A GSPMD text becomes a sharding.
    """
    # Notes guide propagation only: apart, equal placements of two releases stay equal.
    found[name] = plain = drop_notes(value)
    if isinstance(value, ShardySharding):
        for kind, note in value.notes.items():
            found[f"{name} {kind}"] = note
    elif isinstance(value, tuple) and value and isinstance(value[0], ShardySharding):
        for kind in NOTES:
            notes = tuple(spread.notes.get(kind, ()) for spread in value)
            if any(notes):
                found[f"{name} {kind}"] = notes
    elif name in _GSPMD and isinstance(plain, str):
        sharded = _read_gspmd(plain)
        found[name] = plain if sharded is None else sharded


def drop_notes(value: object) -> Attribute:
    """Return a value without Shardy's notes."""
    if isinstance(value, ShardySharding):
        return value.sharding
    if isinstance(value, tuple) and value and isinstance(value[0], ShardySharding):
        return tuple([spread.sharding for spread in value])
    return cast("Attribute", value)


def _read_size(scan: Scanner) -> tuple[str, int]:
    """Read `"x"=2`."""
    name = scan.read_string()
    scan.expect("=")
    return name, scan.read_integer()


def _read_axes(scan: Scanner) -> tuple[list[MeshAxis], bool]:
    """Read `{"x", "y":(1)2, ?}`; return its axes and whether it is open."""
    found = scan.read_list("{", "}", lambda: None if scan.accept("?") else _read_axis(scan))
    if None in found[:-1]:
        scan.fail("'?' as the last, before it")
    return [axis for axis in found if axis is not None], None in found


def _read_dimension(scan: Scanner) -> tuple[list[MeshAxis], bool, int | None]:
    """Read `{"x", ?}p1`; return its axes, whether it is open, and its priority."""
    axes, is_open = _read_axes(scan)
    priority = _PRIORITY.fullmatch(scan.next)
    if priority is not None:
        scan.advance()
    return axes, is_open, None if priority is None else int(priority[1])


def _read_dimensions(
    scan: Scanner,
) -> tuple[list[list[MeshAxis]], dict[str, tuple[Attribute, ...]]]:
    found = scan.read_list("[", "]", lambda: _read_dimension(scan))
    open_ = tuple([n for n, (_, is_open, _) in enumerate(found) if is_open])
    priorities = tuple([(n, p) for n, (_, _, p) in enumerate(found) if p is not None])
    notes: dict[str, tuple[Attribute, ...]] = {"open": open_, "priorities": priorities}
    return [axes for axes, _, _ in found], {kind: note for kind, note in notes.items() if note}
