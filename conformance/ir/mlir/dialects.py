"""Attributes of the dialects that jax's modules are written in: stablehlo, mhlo, chlo, sdy.

Two spellings are our own, for values that came from text which is not kept:
`#conformance.sharding<"tiled", [4, 1], [0, 1, 2, 3], []>` is a sharding device by device,
`#conformance.text<"sha256:... of 2000 elements">` the text of a constant.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from conformance.ir.graph import Sharding
from conformance.ir.hlo.lexing import Unexpected
from conformance.ir.hlo.shardings import Axis
from conformance.ir.mlir import sdy

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.graph import Attribute
    from conformance.ir.hlo.shardings import Mesh
    from conformance.ir.mlir.scan import Scanner

_PLAIN = frozenset({"#stablehlo", "#mhlo", "#chlo", "#vhlo", "#sdy"})
"""Dialects whose enumerations and structures need no more than their grammar."""
SHARDING = "#conformance.sharding"
TEXT = "#conformance.text"
_SPACE = re.compile(r"\s+")


class Dialects:
    """Reads what stands in the angle brackets of a dialect's attribute."""

    __slots__ = ("_by_name", "_meshes", "_value")

    def __init__(self, meshes: dict[str, Mesh], value: Callable[[Scanner], Attribute]) -> None:
        """Take the meshes by name, and what reads the attributes inside."""
        self._meshes = meshes
        self._value = value
        self._by_name: dict[str, Callable[[Scanner], object]] = {
            "#sdy.sharding": self._spread,
            "#sdy.sharding_per_value": self._spreads,
            "#sdy.mesh": self._mesh,
            "#sdy.op_sharding_rule": self._text,
            "#stablehlo.conv": self._text,
            "#mhlo.conv": self._text,
            "#stablehlo.replica_group_mesh_axes": self._groups,
            "#stablehlo.axis_ref": self._axis,
            SHARDING: _own_sharding,
            TEXT: _own_text,
        }

    def read(self, name: str, scan: Scanner) -> object:
        """Return the meaning of an attribute.

        Args:
            name: `#stablehlo.dot`.
            scan: At the angle bracket that follows.

        Raises:
            IrSyntaxError: If its grammar is not known.
        """
        special = self._by_name.get(name)
        if special is not None:
            return special(scan)
        if name.partition(".")[0] not in _PLAIN:
            scan.fail("an attribute of a dialect that is known")
        scan.expect("<")
        found = self._fields(scan)
        scan.expect(">")
        return found

    def _fields(self, scan: Scanner) -> Attribute:
        """Read `LT`, `transpose NO`, `manual_axes{"x"}`, `axis_ref"x"` or `a = 1, b = [2]`."""
        if scan.next == ">":
            return ()
        name = scan.word()
        if scan.next == ">":
            return name
        if scan.next == "{":
            return tuple(scan.listed("{", "}", scan.string))
        if scan.next[:1] == '"':
            return tuple(sdy.axis(scan))
        if scan.next != "=":
            return scan.word()
        found: dict[str, Attribute] = {}
        while True:
            scan.expect("=")
            if name in found:
                scan.fail(f"'{name}' once")
            found[name] = self._value(scan)
            if not scan.accept(","):
                return tuple(sorted(found.items()))
            name = scan.word()

    def _text(self, scan: Scanner) -> str:
        """Read what says it best itself: `<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>`."""
        return _SPACE.sub(" ", scan.bracketed().strip())

    def _spread(self, scan: Scanner) -> sdy.Spread:
        return sdy.spread(scan, self._meshes)

    def _spreads(self, scan: Scanner) -> tuple[sdy.Spread, ...]:
        scan.expect("<")
        found = scan.listed("[", "]", lambda: sdy.spread(scan, self._meshes))
        scan.expect(">")
        return tuple(found)

    def _mesh(self, scan: Scanner) -> Attribute:
        mesh = sdy.mesh(scan)
        return (("axes", tuple(mesh.axes.items())), ("device_ids", mesh.devices))

    def _groups(self, scan: Scanner) -> Attribute:
        """Read `<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>`: groups of devices."""
        scan.expect("<")
        scan.field("mesh_name" if scan.next == "mesh_name" else "mesh")
        mesh = self._named_axes(scan) if scan.next[:1] == "#" else sdy.mesh_of(scan, self._meshes)
        scan.expect(",")
        scan.field("axes")
        axes = cast("Any", self._value(scan))
        scan.expect(">")
        try:
            named = [Axis(one) if isinstance(one, str) else Axis(*one) for one in axes]
            return sdy.groups(mesh, named)
        except (Unexpected, TypeError) as error:
            scan.fail(f"axes of the mesh ({error})")

    def _named_axes(self, scan: Scanner) -> Mesh:
        """Read `#stablehlo.mesh<axes = [...]>` or `#sdy.mesh<["x"=2]>` as a mesh."""
        try:
            fields: dict[str, Any] = dict(cast("Any", self._value(scan)))
            axes = [
                one if isinstance(one[0], str) else tuple([value for _, value in one])
                for one in fields["axes"]
            ]
            return sdy.mesh_from(axes, fields.get("device_ids", ()))
        except (KeyError, TypeError, ValueError, IndexError):
            scan.fail("a mesh before it")

    def _axis(self, scan: Scanner) -> Attribute:
        """Read `<name = "x", sub_axis_info = (1)2>`: name, and which part of the axis."""
        scan.expect("<")
        scan.field("name")
        axis = Axis(scan.string())
        if scan.accept(","):
            scan.field("sub_axis_info")
            axis = sdy.part(scan, axis.name)
        scan.expect(">")
        return tuple(axis)


def _own_text(scan: Scanner) -> str:
    """Read `<"...">`."""
    scan.expect("<")
    found = scan.string()
    scan.expect(">")
    return found


def _own_sharding(scan: Scanner) -> Sharding:
    """Read `<"kind", [tiles], [devices], ["subgroups"], <parts>...>`."""
    scan.enter()
    scan.expect("<")
    kind = scan.string()
    scan.expect(",")
    tiles = scan.listed("[", "]", scan.integer)
    scan.expect(",")
    devices = scan.listed("[", "]", scan.integer)
    scan.expect(",")
    subgroups = scan.listed("[", "]", scan.string)
    parts = []
    while scan.accept(","):
        parts.append(_own_sharding(scan))
    scan.expect(">")
    scan.leave()
    return Sharding(kind, tuple(tiles), tuple(devices), tuple(subgroups), tuple(parts))
