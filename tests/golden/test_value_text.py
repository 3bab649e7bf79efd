"""Small values as text: exact, readable, a line for each element."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.golden.value_text import parse_value, render_value
from conformance.model.value import CorruptValueError, Leaf, Value
from tests.builders import f32, leaf, python, value

DTYPES = ["bool", "int8", "uint32", "int64", "float16", "float32", "float64", "complex64",
          "bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"]  # fmt: skip


@st.composite
def leaves(draw: st.DrawFn) -> Leaf:
    """Any array of a few elements with arbitrary bits, or a Python object."""
    path = draw(st.text(max_size=8))
    if draw(st.booleans()):
        objects = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
        return python(draw(objects), path=path)
    dtype = np.dtype(getattr(ml_dtypes, draw(st.sampled_from(DTYPES)), None) or draw(st.just("i4")))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    size = int(np.prod(shape)) * dtype.itemsize
    return Leaf(
        path=path,
        kind=draw(st.sampled_from(["array", "numpy"])),
        dtype=dtype.name,
        shape=shape,
        weak_type=draw(st.booleans()),
        sharding=draw(st.sampled_from(["", "single", "{[0]: (0, 2)}"])),
        memory_kind=draw(st.sampled_from(["", "pinned_host"])),
        data=draw(st.binary(min_size=size, max_size=size)),
    )


@given(st.lists(leaves(), max_size=4), st.text(max_size=300))
def test_a_text_is_exact_or_absent(found: list[Leaf], structure: str) -> None:
    """Parsing restores the value bit for bit; a value that has no exact text has none."""
    original = Value(structure=structure, leaves=tuple(found))
    text = render_value(original)
    assert text is None or parse_value(text) == original


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_has_a_text(name: str) -> None:
    """Narrow types included."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    original = value(leaf(np.array([0, 1, 1, 0]).astype(dtype)))
    text = render_value(original)
    assert text is not None
    assert parse_value(text) == original


def test_a_reviewer_reads_shape_dtype_decimal_and_bits() -> None:
    """One line for each element, with its index."""
    seen = value(
        leaf(np.array([[0.1, 2]], np.float32), "out[0]"),
        python("two\nlines", "out[1]"),
        leaf(np.array(1 + 2j, np.complex64), "out[2]"),
        structure="[*, *, *]",
    )
    text = render_value(seen)
    assert text is not None
    assert text.decode() == (
        "value 1\nstructure: [*, *, *]\n\n"
        "out[0]: array float32[1,2]\n  [0,0] 0.1 3dcccccd\n  [0,1] 2.0 40000000\n"
        "out[1]: python str =\n  'two\\n\n  lines'\n"
        "out[2]: array complex64[]\n  1.0 3f800000 2.0 40000000\n"
    )


def test_a_long_structure_has_a_line_for_each_entry() -> None:
    """A key that a release adds is a line of the diff."""
    structure = "{" + ", ".join(f"'key {n}': *" for n in range(20)) + "}"
    text = render_value(value(structure=structure))
    assert text is not None
    assert b"\n  'key 7': *,\n" in text
    assert parse_value(text).structure == structure


def test_a_large_value_has_no_text() -> None:
    """The limit is 512 elements."""
    assert render_value(f32(*range(512))) is not None
    assert render_value(f32(*range(513))) is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("value 1", "value 2", "in the first line"),
        ("structure", "form", "line 2: expected the structure"),
        ("out: array", "out is", "line 4: 'out is float32.*', expected 'PATH: KIND"),
        ("0.5 ", "0.25 ", r"line 5: '\[0\] 0.25 3f000000' is no float32 \(0.25 is not 3f000000"),
        ("3f000000", "3f00", "line 5: .* has 2 bytes, expected 4"),
        ("[0] 0.5", "[7] 0.5", r"line 5: '\[7\] 0.5 3f000000', expected '\[0\] '"),
    ],
)
def test_a_malformed_text_is_an_error(old: str, new: str, message: str) -> None:
    """The message has the line."""
    text = render_value(f32(0.5, 1))
    assert text is not None
    assert old.encode() in text
    with pytest.raises(ValueError, match=message):
        parse_value(text.replace(old.encode(), new.encode(), 1))


def test_a_missing_element_is_an_error() -> None:
    """The elements fill the shape."""
    text = render_value(f32(0.5, 1))
    assert text is not None
    with pytest.raises(CorruptValueError):
        parse_value(text.replace(b"  [1] 1.0 3f800000\n", b""))
