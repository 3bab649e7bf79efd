"""Groups of devices in each spelling."""

from __future__ import annotations

import pytest

from conformance.ir.hlo.devices import groups, transposed
from conformance.ir.hlo.lexing import Unexpected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", ()),
        ("{{0,1},{2,3}}", ((0, 1), (2, 3))),
        ("{{0,3}, {1}}", ((0, 3), (1,))),
        ("[2,4]<=[8]", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("[4,2]<=[2,4]T(1,0)", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['x'=4] {'x'}", ((0, 1, 2, 3),)),
        ("mesh['x'=2,'y'=2] {'x'}", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2] {'y'}", ((0, 1), (2, 3))),
        ("mesh['x'=2,'y'=2] {'y','x'}", ((0, 2, 1, 3),)),
        ("mesh[x=2,y=2]{x}", ((0, 2), (1, 3))),
        ("mesh['x'=2,'y'=2], device_ids=(0,2,1,3) {'x'}", ((0, 1), (2, 3))),
        ("mesh['x'=2,'y'=2], device_ids=([2,2]T(1,0)) {'x'}", ((0, 1), (2, 3))),
        ("mesh['a'=8] {'a':(1)2}", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("mesh['a'=8] {'a':(2)2}", ((0, 2), (1, 3), (4, 6), (5, 7))),
        ("mesh['a'=8] {'a':(1)2,'a':(4)2}", ((0, 1, 4, 5), (2, 3, 6, 7))),
    ],
)
def test_groups_are_device_lists_however_spelled(
    text: str, expected: tuple[tuple[int, ...], ...]
) -> None:
    """Lists, iota and axes of a mesh; `a:(2)2` is the part of size 2 after one of size 2."""
    assert groups(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "{{0,1}",
        "{0,1}",
        "[2,4]<=[9]",
        "[8]<=[8]",
        "[2,4]<=[8]T(1)",
        "[2,4]<=[2,4]T(0,0)",
        "[1000000,1000000]<=[1000000000000]",
        "mesh['x'=4] {'y'}",
        "mesh['x'=4]",
        "mesh['x'=4] {'x','x'}",
        "mesh['x'=4] {'x':(3)2}",
        "mesh['x'=4,'x'=2] {'x'}",
        "mesh['x'=2], device_ids=(0,1,2) {'x'}",
        "every one",
    ],
)
def test_what_are_no_groups_is_refused(text: str) -> None:
    """Rather than read as no groups, which would mean all devices."""
    with pytest.raises(Unexpected):
        groups(text)


def test_transposed_is_row_major() -> None:
    """As numpy has it."""
    assert transposed(tuple(range(6)), (2, 3), (1, 0)) == (0, 3, 1, 4, 2, 5)
