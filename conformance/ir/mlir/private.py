"""Spellings of our own, for values that came from text which is not kept.

`#conformance.sharding<"tiled", [4, 1], [0, 1, 2, 3], []>` is a sharding device by device,
`#conformance.text<"sha256:... of 2000 elements">` the text of a constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.graph import Sharding

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
