"""Elements of constants: all spellings of the same content become the same text.

A constant of equal elements is that element (`1.0`), others are a flat list (`[1, 2]`); more than
1,000 elements are a hash of their bytes. Floats have the shortest text that reads back to the same
bits; a NaN other than the default one shows its bits: `nan(0xffc00000)`.
"""

from __future__ import annotations

import re
from hashlib import sha256
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from conformance.ir.graph import freeze

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Tensor

LONGEST = 1000
"""Largest number of elements that are written out; a longer constant becomes a digest."""

# The most integers of an attribute that is no constant, and the most dimensions.
MOST_NESTED, DEEPEST = 1 << 20, 32

Elements: TypeAlias = NDArray[Any]

_NUMPY = {
    "pred": np.dtype(np.bool_),
    "index": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    **{f"s{bits}": np.dtype(f"int{max(bits, 8)}") for bits in (1, 2, 4, 8, 16, 32, 64)},
    **{f"u{bits}": np.dtype(f"uint{max(bits, 8)}") for bits in (1, 2, 4, 8, 16, 32, 64)},
    # From the installed ml_dtypes: a type that it lacks is kept as text, and counted.
    **{
        name.replace("float", "f").replace("_", ""): np.dtype(getattr(ml_dtypes, name))
        for name in dir(ml_dtypes)
        if name.startswith("float")
    },
}
_COMPLEX_PARTS = {"c64": "f32", "c128": "f64"}
_LIST = re.compile(r"[\[\],\s]*+(?>(?:(?:\([^()\[\]]*+\)|[^\s()\[\],]++)[\[\],\s]*+)*)")
_ELEMENT = re.compile(r"\([^()]*+\)|[^\s()\[\],]++")
_INTEGER = re.compile(r"[-+]?\d+")
_FLOAT = re.compile(r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|inf)")
_BITS = re.compile(r"nan\(0x([0-9a-f]+)\)|0x([0-9A-Fa-f]+)|(nan)")
_TRUTH = {"true": 1, "false": 0, "1": 1, "0": 0}


class LiteralError(ValueError):
    """A text that is no literal of its type; the message names the expected text."""


def is_integral(dtype: str) -> bool:
    """Whether the elements of a type are integers or truth values."""
    return dtype in _NUMPY and _NUMPY[dtype].kind in "biu"


def read_elements(text: str, tensor: Tensor) -> Elements | None:
    """Return the elements of `dense<...>`, a single element if they are equal.

    Args:
        text: The text between the angle brackets.
        tensor: Type of the whole.

    Returns:
        A flat array; None if the element type is unknown.

    Raises:
        LiteralError: If the text is no constant of that type.
    """
    dtype = _COMPLEX_PARTS.get(tensor.dtype, tensor.dtype)
    sizes = [size for size in tensor.shape if isinstance(size, int)]
    if dtype not in _NUMPY or text.startswith('"') != text.startswith('"0x'):
        return None
    if len(sizes) != len(tensor.shape):
        raise LiteralError("a constant of a static shape")
    # A complex number is read as two floats.
    width = 2 if tensor.dtype in _COMPLEX_PARTS else 1
    total = prod(sizes)
    if text.startswith('"'):
        values = _decode_bytes(text, _NUMPY[dtype], dtype, total * width)
    else:
        values = _read_list(text, dtype, width)
    if values.size not in (width, total * width):
        raise LiteralError(f"1 or {total} elements")
    # Bytes are compared, not values: NaN differs from itself, and 0.0 equals -0.0.
    if total and values.size > width:
        raw = values.tobytes()
        if raw == raw[: width * values.itemsize] * total:
            values = values[:width]
    return values.view(np.complex64 if dtype == "f32" else np.complex128) if width > 1 else values


def count_elements(tensor: Tensor) -> int:
    """Return the number of elements of a tensor; dynamic sizes count as 1."""
    return prod([size for size in tensor.shape if isinstance(size, int)])


def render_elements(values: Elements, tensor: Tensor) -> str:
    """Return the canonical text of a constant."""
    if not values.size or not count_elements(tensor):
        return "[]"
    if values.size > LONGEST:
        return f"sha256:{sha256(values.tobytes()).hexdigest()[:16]} of {values.size} elements"
    if values.dtype.kind == "c":
        pairs = render_each(values.view(values.real.dtype))
        texts = [f"({re_}, {im})" for re_, im in zip(pairs[::2], pairs[1::2], strict=True)]
    else:
        texts = render_each(values)
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def nest_integers(values: Elements, tensor: Tensor) -> Attribute:
    """Return integers as tuples, nested by the shape.

    Raises:
        LiteralError: If there are too many of them.
    """
    shape = [size for size in tensor.shape if isinstance(size, int)]
    if prod([max(size, 1) for size in shape]) > MOST_NESTED or len(shape) > DEEPEST:
        raise LiteralError(f"at most {MOST_NESTED} elements in {DEEPEST} dimensions")
    # A splat is stored once for any shape.
    single = values.reshape(()) if values.size == 1 else values.reshape(shape)
    return freeze(np.broadcast_to(single, shape).tolist())


def read_number(token: str, dtype: str) -> float | str:
    """Return a float attribute, rounded as its type is; its text if it is not finite.

    Args:
        token: Decimal, or the bits in hexadecimal.
        dtype: Type of the attribute.
    """
    # Rounded by way of the type: releases print 0.1 : f32 with different numbers of digits.
    text = render_each(_read_floats([token], _NUMPY.get(dtype, _NUMPY["f64"])))[0]
    # NaN and infinity have an n: NaN would differ from itself as an attribute.
    return text if "n" in text else float(text)


def _decode_bytes(text: str, kind: np.dtype[Any], dtype: str, count: int) -> Elements:
    try:
        raw = bytes.fromhex(text[3:-1])
    except ValueError:
        raise LiteralError("hexadecimal digits") from None
    # Older releases pack eight truth values into a byte.
    if dtype == "pred" and len(raw) != count:
        if len(raw) != -(-count // 8):
            raise LiteralError(f"{count} truth values")
        bits = np.frombuffer(raw, np.uint8)
        return np.unpackbits(bits, count=count, bitorder="little").astype(np.bool_)
    if len(raw) % kind.itemsize:
        raise LiteralError(f"{count} elements")
    values = np.frombuffer(raw, np.uint8 if dtype == "pred" else kind)
    return values != 0 if dtype == "pred" else values


def _read_list(text: str, dtype: str, width: int) -> Elements:
    # The pattern has no nesting, which the shape implies; `_check_brackets` finds unbalanced ones.
    if _LIST.fullmatch(text) is None:
        raise LiteralError("elements in brackets")
    _check_brackets(text)
    tokens = _ELEMENT.findall(text)
    if width > 1:
        tokens = [part.strip() for token in tokens for part in _split_complex(token)]
    kind = _NUMPY[dtype]
    if kind.kind not in "biu":
        return _read_floats(tokens, kind)
    try:
        if kind.kind == "b":
            return np.array([_TRUTH[token] for token in tokens], np.bool_)
        # `int` accepts more, such as underscores.
        if not all(map(_INTEGER.fullmatch, tokens)):
            raise LiteralError("whole numbers")
        numbers = [int(token) for token in tokens]
        bits = 64 if dtype == "index" else int(dtype[1:])
        low, high = (0, 1 << bits) if dtype[0] == "u" else (-1 << (bits - 1), 1 << (bits - 1))
        if not all(low <= number < high for number in numbers):
            raise LiteralError(f"numbers of {bits} bits")
        return np.array(numbers, kind)
    except (KeyError, ValueError) as error:
        raise LiteralError(f"elements of type {dtype} ({error})") from None


def _check_brackets(text: str) -> None:
    depth = 0
    for bracket in re.findall(r"[\[\]]", text):
        depth += 1 if bracket == "[" else -1
        if depth < 0:
            break
    if depth:
        raise LiteralError("a matching bracket")


def _split_complex(token: str) -> list[str]:
    match token[1:-1].split(","):
        case [real, imaginary] if token[0] == "(":
            return [real, imaginary]
        case _:
            raise LiteralError("(real, imaginary)")


def _get_unsigned(kind: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(f"uint{8 * kind.itemsize}")


def _read_floats(tokens: list[str], kind: np.dtype[Any]) -> Elements:
    """Return floats, which may be spelled by their bits."""
    # Bits are written through a view: a conversion of a float would quieten a signalling NaN.
    values = np.zeros(len(tokens), kind)
    bits = values.view(_get_unsigned(kind))
    with np.errstate(all="ignore"):
        for place, token in enumerate(tokens):
            if _FLOAT.fullmatch(token) is not None:
                values[place] = float(token)
            elif (found := _BITS.fullmatch(token)) is None:
                raise LiteralError("a number")
            elif found[3]:
                values[place] = np.nan
            elif (raw := int(found[1] or found[2], 16)) >> 8 * kind.itemsize:
                raise LiteralError(f"at most {8 * kind.itemsize} bits")
            else:
                bits[place] = raw
    return values


def render_each(values: Elements) -> list[str]:
    """Return the text of each element."""
    if values.dtype.kind == "b":
        return ["true" if value else "false" for value in values]
    if values.dtype.kind in "iu":
        return list(map(str, values.tolist()))
    if values.dtype in {np.dtype(np.float16), np.dtype(np.float32)}:
        # NumPy finds the shortest text of these types; the others are printed as float64.
        spelled = list(map(str, values))
    else:
        with np.errstate(invalid="ignore"):  # a signalling NaN
            spelled = list(map(repr, values.astype(np.float64).tolist()))
    raw: list[int] = values.view(_get_unsigned(values.dtype)).tolist()
    digits = 2 * values.dtype.itemsize
    # The default NaN depends on the type, so it comes from a conversion.
    usual = np.array([np.nan]).astype(values.dtype).view(_get_unsigned(values.dtype))[0]
    for place, text in enumerate(spelled):
        if text[-1] == "n" and raw[place] != usual:
            spelled[place] = f"nan(0x{raw[place]:0{digits}x})"
    return spelled
