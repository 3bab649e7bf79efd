"""Device groups and shardings in every spelling."""

from __future__ import annotations

import pytest

from conformance.ir.graph import Sharding
from conformance.ir.hlo.lexing import HloTextError
from conformance.ir.hlo.shardings import read_device_groups, read_sharding, transpose
from tests.ir.hlo.spelling import spelled_sharding

REPLICATED = Sharding("replicated")
ROWS = Sharding("tiled", (2, 1, 2), (0, 1, 2, 3), ("replicated",))

SPELLINGS = {
    "{replicated}": REPLICATED,
    '{replicated metadata={op_name="a b" source_line=3}}': REPLICATED,
    "{mesh['a'=2,'b'=4], replicated}": REPLICATED,
    "{mesh['a'=2], replicated, metadata={{op_name=\"a\"}}}": REPLICATED,
    "{mesh[], replicated}": REPLICATED,
    "{mesh[], [{}, {}]}": REPLICATED,
    "{devices=[1,1]0}": REPLICATED,
    "{devices=[1,1,4]<=[4] last_tile_dim_replicate}": REPLICATED,
    "{manual}": Sharding("manual"),
    "{mesh['a'=2,'b'=4], manual}": Sharding("manual"),
    "{devices=[1,4]<=[4] last_tile_dims={manual}}": Sharding("manual"),
    "{unknown}": Sharding("unknown"),
    "{unreduced}": Sharding("unreduced"),
    "{mesh['a'=2,'b'=4], unreduced}": Sharding("unreduced"),
    "{mesh['x'=2], [{}], unreduced=max{'x'}}": Sharding("unreduced max"),
    "{mesh['x'=2], unreduced=max}": Sharding("unreduced max"),
    "{maximal device=5}": Sharding("maximal", devices=(5,)),
    "{maximal_mesh[device_id=5]}": Sharding("maximal", devices=(5,)),
    "{single_device[device_id=5]}": Sharding("maximal", devices=(5,)),
    "{devices=[4]<=[4]}": Sharding("tiled", (4,), (0, 1, 2, 3)),
    "{devices=[4]0,1,2,3}": Sharding("tiled", (4,), (0, 1, 2, 3)),
    "{mesh['x'=4], [{'x'}]}": Sharding("tiled", (4,), (0, 1, 2, 3)),
    "{devices=[2,1,2]<=[4] last_tile_dim_replicate}": ROWS,
    "{devices=[2,1,2]1,0,3,2 last_tile_dim_replicate}": ROWS,
    "{devices=[2,1,2]<=[4] last_tile_dims={replicated}}": ROWS,
    "{devices=[2,1,1,2]<=[4] last_tile_dims={manual, replicated}}": ROWS,
    "{mesh['a'=2,'b'=2], [{'a'}, {}]}": ROWS,
    "{mesh['a'=2,'b'=2], [{'a', ?}, {?}]}": ROWS,
    "{mesh['a'=2,'b'=2], [{'a'}, {}], replicated={'b'}}": ROWS,
    "{mesh['a'=4], [{'a':(1)2}, {}]}": ROWS,
    "{devices=[2,2]<=[2,2]T(1,0)}": Sharding("tiled", (2, 2), (0, 2, 1, 3)),
    "{mesh['x'=2,'y'=2], device_ids=(0,2,1,3), [{'x'}, {'y'}]}": Sharding(
        "tiled", (2, 2), (0, 2, 1, 3)
    ),
    "{mesh['x'=2,'y'=2], [{'y'}, {}], manual={'x'}}": Sharding(
        "tiled", (2, 1, 2), (0, 2, 1, 3), ("manual",)
    ),
    "{devices=[1,2,2]<=[4] last_tile_dims={replicated, manual}}": Sharding(
        "tiled", (1, 2, 2), (0, 2, 1, 3), ("manual", "replicated")
    ),
    "{{replicated}, /*index=5*/{maximal device=0}}": Sharding(
        "tuple", parts=(REPLICATED, Sharding("maximal", devices=(0,)))
    ),
    "{}": Sharding("tuple"),
}


@pytest.mark.parametrize(("text", "expected"), SPELLINGS.items(), ids=SPELLINGS)
def test_equal_shardings_are_equal_in_every_spelling(text: str, expected: Sharding) -> None:
    """Each spelling of a release, and the printed one."""
    found, group = read_sharding(text)
    assert (found, group) == (expected, ())
    assert read_sharding(spelled_sharding(found)) == (found, ())


def test_axes_that_are_not_named_are_replicated() -> None:
    """Parts of axes, too; all remaining axes make one last dimension."""
    text = "{mesh['a'=2,'b'=4,'d'=8], [{'a'}, {}], replicated={'b'}, manual={'d':(4)2}}"
    found, _ = read_sharding(text)
    assert found.tiles == (2, 1, 2, 16)
    assert found.subgroups == ("manual", "replicated")


def test_shard_groups_are_returned_separately() -> None:
    """`shard_as` and `shard_like` tie shardings to one another, before compilation."""
    assert read_sharding("{manual shard_as 1}") == (Sharding("manual"), ("as 1",))
    _, groups = read_sharding("{{replicated}, {replicated shard_like 2}}")
    assert groups == ("", "like 2")


@pytest.mark.parametrize(
    "text",
    [
        "replicated",
        "{replicate}",
        "{replicated, manual}",
        "{maximal device=x}",
        "{devices=[2,2]0,1,2}",
        "{devices=[2,2]<=[4] last_tile_dims={nonsense}}",
        "{devices=[2,2]<=[4] last_tile_dim_replicate x}",
        "{mesh['x'=2], [{'y'}]}",
        "{mesh['x'=2], [{'x'}], manual={'x'}}",
        "{mesh['x'=2], [{'x'}], replicated={'x'}}",
        "{mesh['x'=2], {'x'}}",
        "{{replicated}, manual}",
    ],
)
def test_a_malformed_sharding_is_refused(text: str) -> None:
    """None is guessed."""
    with pytest.raises(HloTextError):
        read_sharding(text)


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
def test_device_groups_are_lists_in_every_spelling(
    text: str, expected: tuple[tuple[int, ...], ...]
) -> None:
    """Lists, iota and axes of a mesh; `a:(2)2` is the part of size 2 after a part of size 2."""
    assert read_device_groups(text) == expected


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
def test_malformed_device_groups_are_refused(text: str) -> None:
    """Read as no groups they would mean all devices."""
    with pytest.raises(HloTextError):
        read_device_groups(text)


def test_transpose_is_row_major() -> None:
    """As in NumPy."""
    assert transpose(tuple(range(6)), (2, 3), (1, 0)) == (0, 3, 1, 4, 2, 5)
