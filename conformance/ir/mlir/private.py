"""Spellings of our own, for values that came from text which is not kept.

`#conformance.sharding<"tiled", [4, 1], [0, 1, 2, 3], []>` is a sharding device by device,
`#conformance.text<"sha256:... of 2000 elements">` the text of a constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.graph import Sharding
from conformance.ir.mlir.scan import escape

if TYPE_CHECKING:
    from conformance.ir.mlir.scan import Scanner

SHARDING = "#conformance.sharding"
TEXT = "#conformance.text"


def text(scan: Scanner) -> str:
    """Read `<"...">`."""
    scan.expect("<")
    found = scan.string()
    scan.expect(">")
    return found


def sharding(scan: Scanner) -> Sharding:
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
        parts.append(sharding(scan))
    scan.expect(">")
    scan.leave()
    return Sharding(kind, tuple(tiles), tuple(devices), tuple(subgroups), tuple(parts))


def spelled_text(value: str) -> str:
    """Return the spelling of a text that stands for a constant."""
    return f"{TEXT}<{escape(value)}>"


def spelled(value: Sharding) -> str:
    """Return the spelling of a sharding."""
    return SHARDING + _body(value)


def _body(value: Sharding) -> str:
    fields = [escape(value.kind), *map(_numbers, (value.tiles, value.devices))]
    fields.append(f"[{', '.join(map(escape, value.subgroups))}]")
    return f"<{', '.join([*fields, *map(_body, value.parts)])}>"


def _numbers(values: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, values))}]"
