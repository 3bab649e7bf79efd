"""A pytree of values as observed in a cell: structure, and leaves with their raw bytes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One leaf of an observed pytree.

    Attributes:
        path: Key path within the pytree, e.g. `out[0]['loss']`; `out` for a lone leaf.
        kind: `array` (a jax array), `numpy` (a NumPy array or scalar), `key` (a typed PRNG
            key, stored as its key data) or `python` (bool, int, float, complex, str, bytes,
            None; stored as the UTF-8 text of its `repr`).
        dtype: Dtype name (`float32`, `bfloat16`, `int4`, `key<fry>`), or the Python type's name.
        shape: Dimensions; empty for scalars.
        weak_type: Whether a jax array is weakly typed.
        sharding: Device-to-tile description, `single` for one device, empty when unknown.
        memory_kind: Memory kind when it is not the device's default, else empty.
        data: Little-endian C-order bytes of the elements, 4-bit types one element a byte.
    """

    path: str
    kind: str
    dtype: str
    shape: tuple[int, ...] = ()
    weak_type: bool = False
    sharding: str = ""
    memory_kind: str = ""
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An observed pytree: `structure` is its treedef in words, `leaves` are in flatten order."""

    structure: str
    leaves: tuple[Leaf, ...]
