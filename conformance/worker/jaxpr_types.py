"""Avals, dtypes, PartitionSpecs and meshes as plain data: the types in the document of a jaxpr."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

# Texts of functions and objects contain addresses, which differ in each process.
_ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-f]+|0x[0-9a-f]{6,}")
_AXIS_TYPES = {"Hidden": "Auto", "User": "Explicit", "Collective": "Manual"}  # as in 0.5.0
_AXIS_NAMES = ("unreduced", "reduced")


def strip_addresses(text: str) -> str:
    """Return a text without the addresses of objects in it."""
    return _ADDRESS.sub("", text)


def is_dtype(value: Any) -> bool:
    """Say whether a value is a dtype of NumPy or an extended dtype of jax."""
    return isinstance(value, np.dtype) or _is_extended(value)


def _is_extended(value: Any) -> bool:
    """Say whether a value is an extended dtype of jax, such as that of PRNG keys."""
    return hasattr(value, "_rules") and hasattr(value, "name") and hasattr(value, "type")


def encode_dtype(dtype: Any) -> str:
    """Return the name of a dtype."""
    return str(dtype.name if _is_extended(dtype) else np.dtype(dtype).name)


def encode_aval(aval: Any) -> list[Any]:
    """Return the type of a value: dtype, sizes, and MORE of `conformance.worker.jaxprs`, if any."""
    inner = getattr(aval, "inner_aval", None)
    if inner is not None:
        dtype, *rest = encode_aval(inner)
        return [f"ref<{dtype}>", *rest]
    dtype = getattr(aval, "dtype", None)
    if dtype is None:
        token = type(aval).__name__ == "AbstractToken"
        return ["token" if token else strip_addresses(str(aval)), []]
    shape = [size if type(size) is int else _size(size) for size in getattr(aval, "shape", ())]
    more = dict(_iter_properties(aval))
    return [encode_dtype(dtype), shape, more] if more else [encode_dtype(dtype), shape]


def _size(size: Any) -> int | str:
    try:
        return int(size)
    except Exception:  # a symbolic dimension
        return strip_addresses(str(size))


def _iter_properties(aval: Any) -> Iterator[tuple[str, Any]]:
    """Yield the properties of an aval other than dtype and shape."""
    # Defaults are omitted, so that releases with and without a property are equal.
    if getattr(aval, "weak_type", False):
        yield "weak_type", True
    manual = getattr(aval, "manual_axis_type", None)  # in place of `vma` from 0.10
    varying = getattr(aval, "vma", None) if manual is None else manual.varying
    if varying:
        yield "vma", sorted(map(str, varying))
    for name in _AXIS_NAMES:
        if axes := getattr(manual, name, None):
            yield name, sorted(map(str, axes))
    spec = getattr(getattr(aval, "sharding", None), "spec", None)
    if spec is not None:
        partitions = encode_spec(spec)
        if any(partitions):
            yield "sharding", partitions
    space = getattr(aval, "memory_space", None)
    where = getattr(space, "name", space)
    if where not in (None, "Device", "Any"):
        yield "space", str(where).lower()


def encode_spec(spec: Any) -> list[Any]:
    """Return a PartitionSpec as a list of axis names for each dimension."""
    # A PartitionSpec is no tuple from 0.6.1.
    parts = getattr(spec, "_partitions", None)
    parts_data = [_axes(part) for part in (tuple(spec) if parts is None else parts)]
    more = [(name, getattr(spec, name, None)) for name in _AXIS_NAMES]
    return parts_data + [[name, *sorted(map(str, axes))] for name, axes in more if axes]


def _axes(part: Any) -> Any:
    if part is None:
        return []
    if part is jax.sharding.PartitionSpec.UNCONSTRAINED:
        return "unconstrained"
    return [str(axis) for axis in part] if isinstance(part, (tuple, list)) else [str(part)]


def encode_mesh(mesh: Any) -> list[Any]:
    """Return a mesh as its axes: name, size, and the type unless that is Auto."""
    names = list(mesh.axis_names)
    if getattr(mesh, "empty", False) or not names:
        return ["mesh"]
    sizes = dict(mesh.shape)
    kinds = getattr(mesh, "axis_types", None) or ()
    if isinstance(kinds, Mapping):  # type to axis names, 0.5.0 to 0.5.2
        by_name = {
            axis: kind
            for kind, axes in kinds.items()
            for axis in ((axes,) if isinstance(axes, str) else axes)
        }
    else:
        by_name = dict(zip(names, kinds, strict=False))
    axes = []
    for name in names:
        kind = getattr(by_name.get(name), "name", "Auto")
        kind = _AXIS_TYPES.get(kind, kind)
        axes.append([str(name), sizes[name], *([] if kind == "Auto" else [kind])])
    return ["mesh", *axes]
