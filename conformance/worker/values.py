"""Pytrees as plain data: their structure as text, and leaves with their exact bytes."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from conformance.kit.case import CaseError
from conformance.kit.distributed import number_devices

LARGEST = 256 * 2**20
"""Default limit of the bytes of an observation, `observation_mb`."""
PYTHON_SCALARS = (bool, int, float, complex, str, bytes, type(None))


def flatten(tree: Any, root: str = "out", largest: int = LARGEST) -> tuple[dict[str, Any], bytes]:
    """Return a pytree as a header and the leaves' bytes, one after the other.

    Args:
        tree: Pytree of jax arrays, NumPy arrays, PRNG keys and Python scalars. None is a leaf, so
            that a missing result is observed.
        root: First part of the leaves' paths.
        largest: Limit of the bytes of all leaves together.

    Returns:
        `{"structure", "leaves": [{path, kind, dtype, shape, weak_type, sharding, memory_kind,
        nbytes}]}` and the concatenated little-endian C-order bytes. A leaf of which this process
        holds only a part also has `tiles`, `{"shape": SHAPE, "at": [[[START, STOP], ...], ...]}`:
        its bytes are those of the tiles, one after the other.

    Raises:
        CaseError: If the leaves are too large; none of them has been copied then.
        TypeError: If a leaf is neither an array nor a Python scalar, e.g. a leaked tracer.
    """
    paths, treedef = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda x: x is None)
    size = sum(_measure_size(leaf) for _, leaf in paths)
    if size > largest:
        # An error of the device, such as too little memory, comes before the size.
        jax.block_until_ready([leaf for _, leaf in paths if not isinstance(leaf, jax.core.Tracer)])
    _check_size(size, largest)
    leaves, chunks = [], []
    for path, leaf in paths:
        head, data = _describe_leaf(leaf, root + jax.tree_util.keystr(path))
        leaves.append({**head, "path": root + jax.tree_util.keystr(path), "nbytes": len(data)})
        chunks.append(data)
    # Without the class name, which is no part of the structure.
    structure = str(treedef).removeprefix("PyTreeDef(").removesuffix(")")
    return {"structure": structure, "leaves": leaves}, b"".join(chunks)


def _check_size(size: int, largest: int) -> None:
    """Check the size of a value before it is copied.

    Args:
        size: Bytes of the value.
        largest: Limit of the bytes.

    Raises:
        CaseError: If the value is larger.
    """
    if size > largest:
        raise CaseError(
            f"the observation has {size / 2**20:.0f} MiB, expected at most {largest / 2**20:.0f} "
            "MiB; observe less, or raise observation_mb"
        )


def _measure_size(leaf: Any) -> int:
    """Return the bytes of an array, 0 for other leaves."""
    if isinstance(leaf, jax.core.Tracer) or _is_key(leaf):
        return 0
    return int(leaf.nbytes) if isinstance(leaf, (jax.Array, np.ndarray, np.generic)) else 0


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _describe_leaf(leaf: Any, path: str) -> tuple[dict[str, Any], bytes]:
    if isinstance(leaf, jax.core.Tracer):
        raise TypeError(f"{path} is a tracer, expected a concrete value: {leaf}")
    if isinstance(leaf, jax.Array):
        return _describe_jax_leaf(leaf)
    if isinstance(leaf, (np.ndarray, np.generic)) and np.asarray(leaf).dtype != object:
        return _make_head("numpy", leaf.dtype.name, leaf.shape), _to_bytes(np.asarray(leaf))
    if isinstance(leaf, PYTHON_SCALARS):
        return _make_head("python", type(leaf).__name__, ()), repr(leaf).encode(
            "utf-8", "backslashreplace"
        )
    raise TypeError(f"{path} is a {type(leaf).__name__}, expected an array or a Python scalar")


def _make_head(kind: str, dtype: str, shape: tuple[int, ...], **more: Any) -> dict[str, Any]:
    return {
        "kind": kind,
        "dtype": dtype,
        "shape": list(shape),
        "weak_type": False,
        "sharding": "",
        "memory_kind": "",
        **more,
    }


def _describe_jax_leaf(leaf: Any) -> tuple[dict[str, Any], bytes]:
    is_key = _is_key(leaf)
    data = jax.random.key_data(leaf) if is_key else leaf
    head = _make_head(
        "key" if is_key else "array",
        str(leaf.dtype) if is_key else leaf.dtype.name,
        leaf.shape,
        weak_type=bool(getattr(leaf.aval, "weak_type", False)),
        sharding=describe_sharding(leaf.sharding, leaf.shape),
        memory_kind=_find_memory_kind(leaf),
    )
    if data.is_fully_addressable:
        return head, _to_bytes(np.asarray(data))
    # Of replicas on several devices the last entry counts: that of the device with the lowest id.
    tiles = {
        _list_spans(shard.index, data.shape): shard.data
        for shard in sorted(data.addressable_shards, key=lambda shard: -shard.device.id)
    }
    head["tiles"] = {"shape": list(data.shape), "at": sorted(tiles)}
    return head, b"".join(_to_bytes(np.asarray(tiles[at])) for at in sorted(tiles))


def _list_spans(
    index: tuple[slice | int, ...], shape: tuple[int, ...]
) -> tuple[tuple[int, int], ...]:
    return tuple(_resolve_span(piece, size) for piece, size in zip(index, shape, strict=True))


def _resolve_span(piece: slice | int, size: int) -> tuple[int, int]:
    """Return the start and the stop of an index in one dimension."""
    # Up to 0.4.33 the mapped dimension of a result of pmap has an integer instead of a slice.
    return (piece, piece + 1) if isinstance(piece, int) else piece.indices(size)[:2]


def _to_bytes(array: np.ndarray) -> bytes:
    # A host may be big-endian, and values are compared by their bytes.
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False)).tobytes()


def describe_sharding(sharding: Any, shape: tuple[int, ...]) -> str:
    """Return a sharding as text that names the tile of each device, the same on every release.

    Args:
        sharding: The `jax.sharding.Sharding`.
        shape: Global shape of the array.

    Returns:
        `single` (device 0), `single@3`, `replicated[4]`, or `tiles[0=0:2,: 1=2:4,:]`.
    """
    indices = sharding.devices_indices_map(tuple(shape))
    # Not by id: ids have gaps among ranks, and the ranks' descriptions are compared.
    numbers = number_devices(indices)
    tiles = sorted((numbers[device], index) for device, index in indices.items())
    if len(tiles) == 1:
        device = tiles[0][0]
        return f"single@{device}" if device else "single"
    texts = [_describe_tile(index, shape) for _, index in tiles]
    if len(set(texts)) == 1:
        return f"replicated[{len(tiles)}]"
    return "tiles[" + " ".join(f"{d}={t}" for (d, _), t in zip(tiles, texts, strict=True)) + "]"


def _describe_tile(index: tuple[slice | int, ...], shape: tuple[int, ...]) -> str:
    parts = []
    for (start, stop), size in zip(_list_spans(index, shape), shape, strict=True):
        parts.append(":" if (start, stop) == (0, size) else f"{start}:{stop}")
    return ",".join(parts)


def _find_memory_kind(leaf: Any) -> str:
    kind = getattr(leaf.sharding, "memory_kind", None)
    device = next(iter(leaf.sharding.addressable_devices or leaf.sharding.device_set))
    # The default is named differently by releases: `unpinned_host` up to 0.7.0, then `device`.
    try:
        default = device.default_memory().kind
    except Exception:  # some backends have no memories
        return ""
    return "" if kind in (None, default) else str(kind)
