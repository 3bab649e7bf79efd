"""The value codec: exact round trips, ordinary safetensors, loud corruption."""

from __future__ import annotations

import json
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load

from conformance.model.value import (
    CorruptValueError,
    Leaf,
    Value,
    decode_value,
    dtype_of,
    encode_value,
    to_array,
    to_python,
)
from tests.builders import leaf, python, value

NARROW = [
    name
    for name in dir(ml_dtypes)
    if name.startswith(("float", "bfloat", "int", "uint"))
    and isinstance(getattr(ml_dtypes, name), type)
]
NUMPY = ["bool", "float16", "float32", "float64"] + [
    f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)
]
DTYPES = [*NARROW, *NUMPY, "complex64", "complex128"]

leaves = st.builds(
    Leaf,
    path=st.text(max_size=8),
    kind=st.sampled_from(["array", "numpy", "key", "python"]),
    dtype=st.sampled_from([*DTYPES, "key<fry>", "str"]),
    shape=st.lists(st.integers(0, 3), max_size=3).map(tuple),
    weak_type=st.booleans(),
    sharding=st.sampled_from(["", "single", "tiles[0=0:2 1=2:4]"]),
    memory_kind=st.sampled_from(["", "pinned_host"]),
    data=st.binary(max_size=24),
)
values = st.builds(
    Value, structure=st.text(max_size=8), leaves=st.lists(leaves, max_size=4).map(tuple)
)


@given(values)
def test_any_value_round_trips(original: Value) -> None:
    """Also unusual ones."""
    assert decode_value(encode_value(original)) == original


@pytest.mark.parametrize("name", DTYPES)
def test_every_bit_pattern_round_trips(name: str) -> None:
    """All bytes of every dtype: NaN payloads, -0.0, unused bits."""
    dtype = dtype_of(name)
    data = bytes(range(256)) * dtype.itemsize
    one = Leaf(path="out", kind="array", dtype=name, shape=(256,), data=data)
    (back,) = decode_value(encode_value(value(one))).leaves
    assert back == one
    assert to_array(back).dtype == dtype
    assert to_array(back).tobytes() == data


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (2, 3)])
def test_shapes_round_trip(shape: tuple[int, ...]) -> None:
    """Also of scalars and empty arrays."""
    (back,) = decode_value(encode_value(value(np.ones(shape, np.complex64)))).leaves
    assert to_array(back).shape == shape


def test_any_tool_reads_the_numbers() -> None:
    """The safetensors package reads what is written, complex numbers as pairs."""
    data = encode_value(value(np.arange(3, dtype=np.float32), np.array([1 + 2j], np.complex128)))
    read = load(data)
    assert read["0:out[0]"].tolist() == [0, 1, 2]
    assert read["1:out[1]"].tolist() == [[1, 2]]


def test_a_cut_file_is_corrupt() -> None:
    """No prefix of a file is taken for a value."""
    data = encode_value(value(np.arange(3.0)))
    for length in range(len(data)):
        with pytest.raises(CorruptValueError, match="corrupt value"):
            decode_value(data[:length])


def test_other_bytes_are_corrupt() -> None:
    """Random bytes, foreign safetensors and appended bytes are refused."""
    header = json.dumps({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    foreign = struct.pack("<Q", len(header)) + header + b"x"
    for data in (b"not a value at all", foreign, encode_value(value(1.0)) + b"x"):
        with pytest.raises(CorruptValueError):
            decode_value(data)


def test_a_tensor_without_a_description_is_corrupt() -> None:
    """Even an empty one: somebody else wrote the file."""
    data = encode_value(value(1.0))
    extra = b',"x":{"data_offsets":[8,8],"dtype":"U8","shape":[0]}}'
    header = data[8:-8].rstrip()[:-1] + extra
    with pytest.raises(CorruptValueError, match="2 tensors in 8 bytes, 1 leaves described"):
        decode_value(struct.pack("<Q", len(header)) + header + data[-8:])


def test_another_format_is_refused() -> None:
    """A file of a later format is never interpreted."""
    data = encode_value(value(1.0)).replace(b'"format":"1"', b'"format":"2"')
    with pytest.raises(CorruptValueError, match="value format 2, this release reads 1"):
        decode_value(data)


def test_keys_are_read_as_their_data() -> None:
    """A key array of logical shape (3,) gives its words on a last axis."""
    words = np.arange(6, dtype=np.uint32)
    key = Leaf(path="out", kind="key", dtype="key<fry>", shape=(3,), data=words.tobytes())
    assert to_array(key).tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize(
    "thing", [True, None, 3, -(10**30), 1.5, float("inf"), 2j, complex("nan-infj"), "a\n'", b"\xff"]
)
def test_python_scalars_are_read(thing: object) -> None:
    """Python leaves give back the object whose repr they hold."""
    back = to_python(python(thing))
    assert repr(back) == repr(thing)
    assert type(back) is type(thing)


def test_data_must_fill_the_shape() -> None:
    """A leaf with a byte too few names both sizes."""
    short = Leaf(path="out['w']", kind="array", dtype="float32", shape=(2,), data=b"1234567")
    with pytest.raises(CorruptValueError, match=r"out\['w'\] has 7 bytes, float32\[2\] expected"):
        to_array(short)


def test_text_is_no_array() -> None:
    """A string leaf is not read as numbers."""
    with pytest.raises(CorruptValueError, match="out is a str, a number expected"):
        to_array(python("text"))


def test_unknown_dtype_is_named() -> None:
    """A dtype of the future is an error, not an object array."""
    odd = Leaf(path="out", kind="array", dtype="float3", data=b"")
    with pytest.raises(CorruptValueError, match="dtype float3"):
        to_array(odd)


def test_bytes_are_the_same_for_equal_values() -> None:
    """So that a hash identifies a value."""
    one, other = (value(leaf(np.ones(2), "out", weak_type=True)) for _ in range(2))
    assert encode_value(one) == encode_value(other)
