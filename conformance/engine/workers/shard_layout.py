"""Assembly of a value from the parts that the ranks of a job hold. Pure."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from conformance.engine.workers.transcript import build_value
from conformance.model.value import CorruptValueError, Leaf, Value, to_array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from conformance.engine.workers.messages import TileSet, ValueHeader

RankValue: TypeAlias = "tuple[ValueHeader, bytes]"
"""A value as a rank sent it, see `conformance.worker.values.flatten`."""
ASPECTS = ("path", "kind", "dtype", "shape", "weak_type", "sharding", "memory_kind")


class DisagreementError(Exception):
    """Ranks do not agree on a value; the message names them and the first difference."""


def assemble_value(wires: Mapping[int, RankValue]) -> Value:
    """Return the value that ranks observed together.

    Args:
        wires: Value of each rank as sent, by number of the rank.

    Returns:
        The value with complete arrays.

    Raises:
        DisagreementError: If the ranks disagree on structure, types or placement, replicas differ
            in a bit, or a part of an array is on no rank.
    """
    # Ranks finish in any order: the message must name the same two ranks each time.
    wires = dict(sorted(wires.items()))
    values = {rank: build_value(head, body) for rank, (head, body) in wires.items()}
    first = min(wires)
    # The structure first: leaves of different structures cannot be paired.
    for rank, value in values.items():
        _check_agreement(first, values[first].structure, rank, value.structure, "structure")
        _check_agreement(
            first, len(values[first].leaves), rank, len(value.leaves), "number of leaves"
        )
    leaves = []
    for number, leaf in enumerate(values[first].leaves):
        for rank, value in values.items():
            for aspect in ASPECTS:
                got, other = getattr(leaf, aspect), getattr(value.leaves[number], aspect)
                _check_agreement(first, got, rank, other, f"{leaf.path} {aspect.replace('_', ' ')}")
        parts = {
            rank: (value.leaves[number].data, wires[rank][0].leaves[number].tiles)
            for rank, value in values.items()
        }
        leaves.append(_assemble_leaf(leaf, parts))
    return Value(structure=values[first].structure, leaves=tuple(leaves))


def _check_agreement(first: int, got: object, rank: int, other: object, aspect: str) -> None:
    if got != other:
        raise DisagreementError(f"{aspect} is {got} on rank {first}, {other} on rank {rank}")


def _assemble_leaf(leaf: Leaf, parts: Mapping[int, tuple[bytes, TileSet | None]]) -> Leaf:
    """Return a leaf with the data of all ranks; `tiles` is None for a rank with the whole leaf."""
    shape = next((tiles.shape for _, tiles in parts.values() if tiles), None)
    if shape is None:
        return _check_equal(leaf, {rank: data for rank, (data, _) in parts.items()})
    every = [(0, size) for size in shape]
    tiled = {
        rank: (data, [every] if tiles is None else tiles.at)
        for rank, (data, tiles) in parts.items()
    }
    # Not from the dtype: the elements of a key array are key data of any size.
    item_size = _find_item_size(tiled)
    canvas = _Canvas(leaf, shape, item_size)
    for rank, (data, tiles) in tiled.items():
        start = 0
        for tile in tiles:
            end = start + item_size * _count_elements(tile)
            canvas.paint(rank, tile, data[start:end])
            start = end
    return canvas.make_leaf()


def _check_equal(leaf: Leaf, data: Mapping[int, bytes]) -> Leaf:
    """Return a leaf that every rank has whole, if all have the same bytes."""
    first = min(data)
    for rank, other in data.items():
        if other == data[first]:
            continue
        if leaf.kind == "python" or len(other) != len(data[first]) or not leaf.shape:
            got, found = _format_elements(leaf, data[first]), _format_elements(leaf, other)
            raise DisagreementError(f"{leaf.path} is {got} on rank {first}, {found} on rank {rank}")
        # Painting one rank over the other raises an error with the first differing index.
        canvas = _Canvas(leaf, leaf.shape, len(other) // prod(leaf.shape))
        every = [(0, size) for size in leaf.shape]
        canvas.paint(first, every, data[first])
        canvas.paint(rank, every, other)
    return leaf


def _count_elements(tile: Sequence[Sequence[int]]) -> int:
    return prod(stop - start for start, stop in tile)


def _find_item_size(tiled: Mapping[int, tuple[bytes, Sequence[Any]]]) -> int:
    for data, tiles in tiled.values():
        count = sum(map(_count_elements, tiles))
        if count:
            return len(data) // count
    return 1  # only empty tiles


class _Canvas:
    """The bytes of an array, filled in tile by tile, with the rank that filled in each element."""

    def __init__(self, leaf: Leaf, shape: tuple[int, ...], item_size: int) -> None:
        self._leaf = leaf
        self._bytes: NDArray[np.uint8] = np.zeros((*shape, item_size), np.uint8)
        self._ranks: NDArray[np.int64] = np.full(shape, -1)

    def paint(self, rank: int, tile: Sequence[Sequence[int]], data: bytes) -> None:
        # The ellipsis keeps a scalar an array that can be painted.
        at: Any = (*(slice(start, stop) for start, stop in tile), ...)
        painted, ranks = self._bytes[at], self._ranks[at]
        piece = np.frombuffer(data, np.uint8).reshape(painted.shape)
        # Bytes, not numbers: replicas must agree on NaN payloads and signs of zero, too.
        wrong = (ranks >= 0) & (painted != piece).any(axis=-1)
        if wrong.any():
            place = tuple(int(n) for n in np.argwhere(wrong)[0])
            index = [start + n for (start, _), n in zip(tile, place, strict=True)]
            got = _format_elements(self._leaf, painted[place].tobytes(), ())
            other = _format_elements(self._leaf, piece[place].tobytes(), ())
            raise DisagreementError(
                f"{self._leaf.path} at {index} is {got} on rank {int(ranks[place])}, "
                f"{other} on rank {rank}; {int(wrong.sum())} of {wrong.size} elements differ"
            )
        painted[...] = piece
        ranks[...] = rank

    def make_leaf(self) -> Leaf:
        if (self._ranks < 0).any():
            index = [int(n) for n in np.argwhere(self._ranks < 0)[0]]
            raise DisagreementError(f"{self._leaf.path} at {index} lies on no rank")
        return replace(self._leaf, data=self._bytes.tobytes())


def _format_elements(leaf: Leaf, data: bytes, shape: tuple[int, ...] | None = None) -> str:
    """Return data of a leaf as text: its elements, or its bytes if they form none."""
    if leaf.kind == "python":
        return data.decode("utf-8", "replace")
    try:
        shown = replace(leaf, data=data, shape=leaf.shape if shape is None else shape)
        return str(to_array(shown))
    except CorruptValueError:
        return f"0x{data.hex()}"
