"""Values as observed in a cell, and their encoding as safetensors files.

The container is written here, not by the safetensors package: its low-level API differs between
releases and does not fix the order of the header, while a golden's name is the hash of its bytes.
The files are ordinary safetensors (format of 2022, checked against the package in the tests), so
that any tool reads their numbers. What safetensors cannot express (path, kind, weak type, narrow
floats) is in `__metadata__`.
"""

from __future__ import annotations

import ast
import json
import math
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import ml_dtypes
import numpy as np

from conformance.errors import ConformanceError

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
        memory_kind: Memory kind, empty for the device's default.
        data: Little-endian C-order bytes of the elements; a 4-bit element takes a byte.
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


FORMAT = 1
"""Version of the metadata; a file of another version is refused."""

_NATIVE = {
    "bool": ("BOOL", 1),
    "uint8": ("U8", 1),
    "int8": ("I8", 1),
    "uint16": ("U16", 2),
    "int16": ("I16", 2),
    "uint32": ("U32", 4),
    "int32": ("I32", 4),
    "uint64": ("U64", 8),
    "int64": ("I64", 8),
    "float8_e4m3fn": ("F8_E4M3", 1),
    "float8_e5m2": ("F8_E5M2", 1),
    "float16": ("F16", 2),
    "bfloat16": ("BF16", 2),
    "float32": ("F32", 4),
    "float64": ("F64", 8),
}
"""Dtypes that every safetensors release from 0.4 has: safetensors code, and bytes per element."""

_AS_PAIRS = {"complex64": ("F32", 4), "complex128": ("F64", 8)}
"""Complex dtypes are stored with a last axis of 2: only recent safetensors releases have `C64`."""

_FIELDS = ("path", "kind", "dtype", "shape", "weak_type", "sharding", "memory_kind")
_LENGTH = struct.Struct("<Q")


class CorruptValueError(ConformanceError):
    """Bytes that are not a value this codec wrote."""


def encode_value(value: Value) -> bytes:
    """Return a value as the bytes of a safetensors file.

    Args:
        value: The value; leaves whose data do not fill their shape are stored as plain bytes.

    Returns:
        The file's content: the same bytes for equal values, on every host.
    """
    header: dict[str, Any] = {
        "__metadata__": {
            "format": str(FORMAT),
            "leaves": _dumps(
                [{name: getattr(leaf, name) for name in _FIELDS} for leaf in value.leaves]
            ),
            "structure": value.structure,
        }
    }
    offset = 0
    for index, leaf in enumerate(value.leaves):
        code, shape = _choose_storage(leaf)
        end = offset + len(leaf.data)
        header[_make_tensor_name(index, leaf.path)] = {
            "dtype": code,
            "shape": shape,
            "data_offsets": [offset, end],
        }
        offset = end
    text = _dumps(header).encode()
    # Padded to 8 bytes, as the package pads it: readers may map the tensors into memory.
    text += b" " * (-len(text) % 8)
    return b"".join([_LENGTH.pack(len(text)), text, *(leaf.data for leaf in value.leaves)])


def decode_value(data: bytes) -> Value:
    """Return the value that `encode_value` wrote.

    Args:
        data: Content of the file.

    Returns:
        The value, equal to the encoded value bit for bit.

    Raises:
        CorruptValueError: If the bytes are cut short, altered or of another format.
    """
    header, body = _split(data)
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict) or "leaves" not in metadata or "structure" not in metadata:
        _raise_corrupt("no structure in its metadata")
    if metadata.get("format") != str(FORMAT):
        _raise_corrupt(f"value format {metadata.get('format')}, this release reads {FORMAT}")
    try:
        described = json.loads(metadata["leaves"])
        leaves = tuple(_parse_leaf(i, fields, header, body) for i, fields in enumerate(described))
    except (ValueError, RecursionError, TypeError, KeyError, IndexError) as error:
        _raise_corrupt(f"leaves do not match their description ({type(error).__name__}: {error})")
    # A tensor without a leaf, or bytes without a tensor, would be lost silently.
    if len(header) != len(leaves) or sum(len(leaf.data) for leaf in leaves) != len(body):
        _raise_corrupt(
            f"{len(header)} tensors in {len(body)} bytes, {len(leaves)} leaves described"
        )
    return Value(structure=metadata["structure"], leaves=leaves)


def to_array(leaf: Leaf) -> NDArray[Any]:
    """Return a leaf's elements as a read-only NumPy array.

    Args:
        leaf: The leaf. Narrow floats and integers get their `ml_dtypes` dtype; keys are their
            uint32 key data; Python numbers are float64, complex128, int64 (object if larger)
            or bool scalars.

    Returns:
        The array, of the leaf's shape; keys may have an additional last axis for the key data.

    Raises:
        CorruptValueError: If the data do not fill the shape, or the leaf is text.
    """
    if leaf.kind == "python":
        return _make_python_array(leaf)
    dtype = np.dtype(np.uint32) if leaf.kind == "key" else dtype_of(leaf.dtype)
    try:
        flat = np.frombuffer(leaf.data, dtype.newbyteorder("<") if dtype.isbuiltin == 1 else dtype)
        # The length of the key data depends on the PRNG implementation: threefry 2, rbg 4.
        if leaf.kind == "key" and flat.size != math.prod(leaf.shape):
            return flat.reshape((*leaf.shape, -1))
        return flat.reshape(leaf.shape)
    except ValueError:
        _raise_corrupt(
            f"{leaf.path} has {len(leaf.data)} bytes, {leaf.dtype}{list(leaf.shape)} expected"
        )


def to_python(leaf: Leaf) -> Any:
    """Return the Python object of a `python` leaf.

    Args:
        leaf: A leaf of kind `python`.

    Returns:
        A bool, int, float, complex, str, bytes or None; the stored text for any other type.

    Raises:
        CorruptValueError: If the text is not of the type that the leaf names.
    """
    text = leaf.data.decode("utf-8", "surrogateescape")
    try:
        match leaf.dtype:
            # `literal_eval` reads neither `nan` nor `inf`, which are names and no literals.
            case "float":
                return float(text)
            case "complex":
                return complex(text)
            case "bool" | "int" | "str" | "bytes" | "NoneType":
                return ast.literal_eval(text)
            case _:
                return text
    except (ValueError, SyntaxError):
        _raise_corrupt(f"{leaf.path} says {text[:40]!r}, a {leaf.dtype} expected")


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a dtype name, `ml_dtypes` included.

    Args:
        name: Dtype name as jax spells it, e.g. `float32`, `bfloat16`, `int4`.

    Raises:
        CorruptValueError: If neither NumPy nor `ml_dtypes` knows the name.
    """
    try:
        return np.dtype(getattr(ml_dtypes, name, name))
    except TypeError:
        _raise_corrupt(f"dtype {name} is known neither to numpy nor to ml_dtypes")


def _choose_storage(leaf: Leaf) -> tuple[str, list[int]]:
    """Return the safetensors code and shape under which a leaf is stored."""
    size = math.prod(leaf.shape)
    if leaf.kind in {"array", "numpy"}:
        code, width = _NATIVE.get(leaf.dtype, ("", 0))
        if code and len(leaf.data) == size * width:
            return code, list(leaf.shape)
        code, width = _AS_PAIRS.get(leaf.dtype, ("", 0))
        if code and len(leaf.data) == 2 * size * width:
            return code, [*leaf.shape, 2]
    # Keys, Python objects and narrow types are plain bytes: safetensors has no 4-bit dtype.
    return "U8", [len(leaf.data)]


def _make_tensor_name(index: int, path: str) -> str:
    # The index keeps names apart when two leaves share a path, and off `__metadata__`.
    return f"{index}:{path}"


def _dumps(data: Any) -> str:
    # Sorted and without spaces: the bytes of a value are hashed into the name of its blob.
    return json.dumps(data, sort_keys=True, separators=(",", ":"))


def _split(data: bytes) -> tuple[dict[str, Any], bytes]:
    if len(data) < _LENGTH.size:
        _raise_corrupt(f"{len(data)} bytes, too short for a header")
    (length,) = _LENGTH.unpack_from(data)
    if _LENGTH.size + length > len(data):
        _raise_corrupt(f"{len(data)} bytes, header of {length} expected")
    try:
        header = json.loads(data[_LENGTH.size : _LENGTH.size + length])
    except (ValueError, RecursionError) as error:
        _raise_corrupt(f"header is not JSON ({error})")
    if not isinstance(header, dict):
        _raise_corrupt("header is not a table")
    return header, data[_LENGTH.size + length :]


def _parse_leaf(index: int, fields: dict[str, Any], header: dict[str, Any], body: bytes) -> Leaf:
    begin, end = header[_make_tensor_name(index, fields["path"])]["data_offsets"]
    if not 0 <= begin <= end <= len(body):
        raise ValueError(f"bytes {begin} to {end} of {len(body)}")
    fields["shape"] = tuple(fields["shape"])
    return Leaf(**fields, data=body[begin:end])


def _make_python_array(leaf: Leaf) -> NDArray[Any]:
    value = to_python(leaf)
    if not isinstance(value, bool | int | float | complex):
        _raise_corrupt(f"{leaf.path} is a {leaf.dtype}, a number expected")
    array = np.asarray(value)
    # As arrays from `frombuffer` are: no caller may depend on the kind of a leaf.
    array.flags.writeable = False
    return array


def _raise_corrupt(found: str) -> NoReturn:
    raise CorruptValueError(f"corrupt value: {found}; run the case again to rewrite it")
