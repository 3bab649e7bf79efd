"""Assembly of a value from the parts that ranks hold."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.workers.messages import ValueHeader, read_message
from conformance.engine.workers.shard_layout import DisagreementError, RankValue, assemble_value
from conformance.model.value import to_array


def wire(*leaves: tuple[dict[str, Any], bytes], structure: str = "*") -> RankValue:
    """Return a value as a rank sends it."""
    heads = [{**head, "nbytes": len(data)} for head, data in leaves]
    whole = read_message({"structure": structure, "leaves": heads}, ValueHeader)
    return whole, b"".join(data for _, data in leaves)


def head(shape: tuple[int, ...], **more: Any) -> dict[str, Any]:
    """Return a leaf's head."""
    return {
        "path": "out", "kind": "array", "dtype": "int32", "shape": list(shape), "weak_type": False,
        "sharding": "", "memory_kind": "", **more,
    }  # fmt: skip


def part(array: np.ndarray, *at: tuple[tuple[int, int], ...], **more: Any) -> RankValue:
    """Return what a rank sends that holds tiles of an array."""
    data = b"".join(array[tuple(slice(*span) for span in tile)].tobytes() for tile in at)
    tiles = {"shape": list(array.shape), "at": [list(map(list, tile)) for tile in at]}
    return wire((head(array.shape, tiles=tiles, **more), data))


@given(st.data())
def test_any_tiling_assembles_the_array(data: st.DataObject) -> None:
    """With any assignment of tiles to ranks, and with replicas."""
    shape = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=3).map(tuple))
    array = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    cuts = [sorted({0, size, *data.draw(st.sets(st.integers(0, size)))}) for size in shape]
    tiles: list[tuple[tuple[int, int], ...]] = [()]
    for cut in cuts:
        spans = list(pairwise(cut)) or [(0, 0)]
        tiles = [(*tile, span) for tile in tiles for span in spans]
    held: list[list[tuple[tuple[int, int], ...]]] = [[], [], []]
    for tile in tiles:
        for rank in data.draw(st.sets(st.integers(0, 2), min_size=1)):
            held[rank].append(tile)
    value = assemble_value({rank: part(array, *own) for rank, own in enumerate(held)})
    assert to_array(value.leaves[0]).tolist() == array.tolist()


def test_a_differing_bit_of_a_replica_is_an_error() -> None:
    """It names the element, both ranks and both values."""
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    other = array.copy()
    other[1, 2] = 7
    text = r"^out at \[1, 2\] is 5 on rank 0, 7 on rank 1; 1 of 3 elements differ$"
    with pytest.raises(DisagreementError, match=text):
        assemble_value({0: part(array, ((0, 2), (0, 3))), 1: part(other, ((1, 2), (0, 3)))})


def test_replicas_are_compared_bit_by_bit() -> None:
    """Equal numbers with other bits differ, and equal NaN are equal."""
    nan = wire((head((1,), dtype="float32"), np.array([np.nan], np.float32).tobytes()))
    assert assemble_value({0: nan, 1: nan}).leaves[0].data == nan[1]
    zero, minus = (
        wire((head((1,), dtype="float32"), np.array([z], np.float32).tobytes()))
        for z in (0.0, -0.0)
    )
    with pytest.raises(DisagreementError, match=r"is 0.0 on rank 0, -0.0 on rank 1"):
        assemble_value({1: minus, 0: zero})


def test_an_array_with_a_gap_is_an_error() -> None:
    """An array with a hole is none."""
    array = np.arange(4, dtype=np.int32)
    with pytest.raises(DisagreementError, match=r"out at \[3\] lies on no rank"):
        assemble_value({0: part(array, ((0, 2),)), 1: part(array, ((2, 3),))})


def test_a_rank_may_have_the_whole_array() -> None:
    """The other ranks have no part of its mesh."""
    array = np.arange(4, dtype=np.int32)
    value = assemble_value({0: wire((head((4,)), array.tobytes())), 1: part(array)})
    assert to_array(value.leaves[0]).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (wire(structure="(*,)"), wire(structure="*"), "structure is (*,) on rank 0, * on rank 1"),
        (wire(), wire((head(()), b"\0" * 4)), "number of leaves is 0 on rank 0, 1 on rank 1"),
        (
            wire((head((1,)), b"\0" * 4)),
            wire((head((1,), dtype="float32"), b"\0" * 4)),
            "out dtype is int32 on rank 0, float32 on rank 1",
        ),
        (
            wire((head((1,), sharding="single"), b"\0" * 4)),
            wire((head((1,), sharding="single@1"), b"\0" * 4)),
            "out sharding is single on rank 0, single@1 on rank 1",
        ),
        (
            wire((head((), kind="python", dtype="str"), b"'a'")),
            wire((head((), kind="python", dtype="str"), b"'bc'")),
            "out is 'a' on rank 0, 'bc' on rank 1",
        ),
    ],
)
def test_ranks_must_agree_on_everything(one: RankValue, other: RankValue, said: str) -> None:
    """On structure, types, placement, and on leaves that are no arrays."""
    with pytest.raises(DisagreementError) as caught:
        assemble_value({0: one, 1: other})
    assert str(caught.value) == said
