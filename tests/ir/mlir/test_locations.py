"""Locations of instructions."""

from __future__ import annotations

import pytest

from conformance.ir.graph import NOWHERE, IrSyntaxError, Origin
from conformance.ir.mlir import parse

from .same import text

TABLE = """
#loc = loc(unknown)
#loc1 = loc("/src/a.py":3:4 to :9)
#loc2 = loc("/src/b.py":7:1)
#loc3 = loc("f"(#loc1))
#loc4 = loc("<module>"(#loc2))
#loc5 = loc(callsite(#loc3 at #loc4))
#loc6 = loc("jit(f)/add"(#loc5))
#loc7 = loc("while:"(#loc6))
#loc8 = loc("scan:")
#loc9 = loc(callsite(#loc at #loc4))
"""


def origin(location: str) -> Origin:
    """Return the origin of an operation at a location."""
    return parse(text(f'"a.b"() : () -> () loc({location})') + TABLE).entry.instructions[-1].origin


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("unknown", NOWHERE),
        ("#loc", NOWHERE),
        ("#loc1", Origin("", "/src/a.py", 3)),
        ("#loc6", Origin("jit(f)/add", "/src/a.py", 3)),
        ("#loc7", Origin("jit(f)/add", "/src/a.py", 3)),
        ("#loc8", Origin("scan")),
        ("#loc9", Origin("", "/src/b.py", 7)),
        ('"x"', Origin("x")),
        ('"g"("/src/c.py":2:1 to 5:6)', Origin("g", "/src/c.py", 2)),
        ('"g"(callsite("h"(#loc2) at #loc1))', Origin("g", "/src/b.py", 7)),
        ('fused[#loc8, "/src/c.py":2:1]', Origin("scan", "/src/c.py", 2)),
        ('fused<"why">["g"(#loc1)]', Origin("g", "/src/a.py", 3)),
    ],
)
def test_a_location_yields_name_stack_and_innermost_frame(location: str, expected: Origin) -> None:
    """The outermost name that is no kind of primitive; the file of the user."""
    assert origin(location) == expected


def test_equal_origins_are_one_object() -> None:
    """They are shared by many instructions."""
    line = '"a.b"() : () -> () loc(#loc6)'
    module = parse(text(line, line, '"a.b"() : () -> () loc("jit(f)/add"(#loc5))') + TABLE)
    origins = [one.origin for one in module.entry.instructions if one.op == "a.b"]
    assert origins[0] is origins[1] is origins[2]


def test_long_chains_of_locations_are_read() -> None:
    """Each frame of a deep stack refers to the previous one."""
    chain = "".join(f"#loc{n + 1} = loc(callsite(#loc{n} at #loc0))\n" for n in range(5000))
    table = f'#loc0 = loc("/src/a.py":1:1)\n{chain}'
    module = parse(text('"a.b"() : () -> () loc(#loc5000)') + table)
    assert module.entry.instructions[-1].origin == Origin("", "/src/a.py", 1)


@pytest.mark.parametrize(
    ("location", "got"),
    [
        ("#loc99", "'#loc99'"),
        ("nowhere", "'nowhere'"),
        ('"f":1', "')'"),
        ("callsite(#loc1)", "')'"),
        ("fused[]", "']'"),
        ('"a"(' * 5000, "'\"a\"'"),
    ],
)
def test_a_malformed_location_is_refused(location: str, got: str) -> None:
    """The message names the token."""
    with pytest.raises(IrSyntaxError, match="got ") as raised:
        origin(location)
    assert f"got {got}" in str(raised.value)


def test_a_cyclic_location_is_refused() -> None:
    """Also an indirect cycle."""
    table = '#loc1 = loc("a"(#loc2))\n#loc2 = loc("b"(#loc1))\n'
    with pytest.raises(IrSyntaxError, match="leads to itself"):
        parse(text('"a.b"() : () -> () loc(#loc1)') + table)
