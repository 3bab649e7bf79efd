"""Small values as text: a line for each element, with its decimal and its bits.

A golden value in this form is readable in a pull request: a changed element is a changed line.

```
value 1
structure: [*, *]

out[0]: python int = 1
out[1]: array float32[2]
  sharding = single
  [0] 0.1 3dcccccd
  [1] 1.0 3f800000
```
"""

from __future__ import annotations

import math
import re
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.model.value import CorruptValueError, Leaf, Value, dtype_of, to_array

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

FORMAT: Final = "value 1"
"""First line of a text."""

_MAX_ELEMENTS: Final = 512
"""Array elements beyond which a value has no text: nobody reviews so many by eye."""
# Python objects have no elements, but may be long strings.
_MAX_CHARACTERS: Final = 1 << 16

_LONG_STRUCTURE: Final = 100
_INDENT: Final = "  "
_ARRAY: Final = re.compile(r"(.*?): (array|numpy|key) (\S+)\[([\d,]*)\]")
_PYTHON: Final = re.compile(r"(.*?): python (\S+) =(?: (.*))?")
_ATTRIBUTE: Final = re.compile(r"(sharding|memory_kind) = (.*)")
_WEAK: Final = "weak_type"


def render_value(value: Value) -> bytes | None:
    """Render a value as text.

    Args:
        value: An observed pytree.

    Returns:
        The text in UTF-8, or None if the value is too large, or has a leaf that the form cannot
        represent exactly.
    """
    elements = sum(math.prod(leaf.shape) for leaf in value.leaves if leaf.kind != "python")
    if elements > _MAX_ELEMENTS:
        return None
    try:
        text = "\n".join(_render_value(value)) + "\n"
        if len(text) > _MAX_CHARACTERS:
            return None
        # Strings may hold bytes that are no UTF-8, which Python reads as lone surrogates.
        data = text.encode(errors="surrogateescape")
        # Leaves are arbitrary: a path may contain a line break, a Python object any
        # representation. Parsing the text is the one check that covers them all.
        return data if parse_value(data) == value else None
    except (ValueError, CorruptValueError):
        return None


def parse_value(data: bytes) -> Value:
    """Parse the text that `render_value` wrote.

    Args:
        data: The text in UTF-8.

    Returns:
        The value, equal to the rendered one bit for bit.

    Raises:
        ValueError: If the text is malformed, or the decimal and the bits of an element disagree.
            The message names the line.
        CorruptValueError: If the elements do not fill the shape, or a dtype is unknown.
    """
    lines = data.decode(errors="surrogateescape").split("\n")
    if lines[0] != FORMAT or lines[-1]:
        raise ValueError(f"expected {FORMAT!r} in the first line, and a line break at the end")
    number = 1
    if number >= len(lines) or not lines[number].startswith("structure:"):
        raise ValueError("line 2: expected the structure")
    structure = lines[number].removeprefix("structure:").removeprefix(" ")
    if not structure:
        parts = _read_indented(lines, number + 1)
        structure = " ".join(parts)
        number += len(parts)
    number += 2  # past the last line of the structure, and the blank line
    leaves = []
    while number < len(lines) - 1:
        body = _read_indented(lines, number + 1)
        if header := _PYTHON.fullmatch(lines[number]):
            path, dtype, text = header.groups()
            data = (text or "".join(body)).encode(errors="surrogateescape")
            leaves.append(Leaf(path=path, kind="python", dtype=dtype, data=data))
        elif header := _ARRAY.fullmatch(lines[number]):
            leaves.append(_parse_array(header, body, number + 2))
        else:
            found = lines[number][:60]
            raise ValueError(f"line {number + 1}: {found!r}, expected 'PATH: KIND DTYPE[SHAPE]'")
        number += 1 + len(body)
    return Value(structure=structure, leaves=tuple(leaves))


def _render_value(value: Value) -> Iterator[str]:
    yield FORMAT
    if value.structure and len(value.structure) <= _LONG_STRUCTURE:
        yield f"structure: {value.structure}"
    else:
        yield "structure:"
        # A line a part, so that a diff of a large pytree shows the part that changed.
        yield from (f"{_INDENT}{part}" for part in re.split(r"(?<=,) ", value.structure))
    yield ""
    for leaf in value.leaves:
        if leaf.kind == "python":
            yield from _render_python(leaf)
        else:
            yield f"{leaf.path}: {leaf.kind} {leaf.dtype}[{','.join(map(str, leaf.shape))}]"
            yield from (f"{_INDENT}{line}" for line in _render_array(leaf))


def _render_python(leaf: Leaf) -> Iterator[str]:
    """Yield the lines of a Python object: a string with several lines changes line by line."""
    text = leaf.data.decode(errors="surrogateescape")
    first, *more = re.split(r"(?<=\\n)(?!['\"]$)", text)
    header = f"{leaf.path}: python {leaf.dtype} ="
    if more or not first:
        yield header
        yield from (f"{_INDENT}{part}" for part in (first, *more))
    else:
        yield f"{header} {first}"


def _render_array(leaf: Leaf) -> Iterator[str]:
    if leaf.weak_type:
        yield _WEAK
    if leaf.sharding:
        yield f"sharding = {leaf.sharding}"
    if leaf.memory_kind:
        yield f"memory_kind = {leaf.memory_kind}"
    array = to_array(leaf)
    for index in np.ndindex(array.shape):
        prefix = f"[{','.join(map(str, index))}] " if index else ""
        yield prefix + _render_element(array[index])


def _render_element(element: Any) -> str:
    """Render an element: integers and booleans in decimal alone, which is exact."""
    dtype = np.dtype(type(element))
    if dtype.kind in "biu" or np.issubdtype(dtype, np.bool_) or _is_narrow_integer(dtype):
        return str(int(element))
    if dtype.kind == "c":
        return f"{_render_float(element.real)} {_render_float(element.imag)}"
    return _render_float(element)


def _render_float(element: Any) -> str:
    # NumPy prints the shortest decimal that reads back as the same float16, 32 or 64. ml_dtypes
    # promises no such thing, so its types are printed as the exact float64 they convert to.
    native = np.dtype(type(element)).kind == "f" and np.dtype(type(element)).isbuiltin == 1
    decimal = str(element) if native else repr(float(element))
    return f"{decimal} {np.asarray(element).tobytes()[::-1].hex()}"


def _is_narrow_integer(dtype: np.dtype[Any]) -> bool:
    return re.fullmatch(r"u?int\d", dtype.name) is not None


def _parse_array(header: re.Match[str], body: list[str], first: int) -> Leaf:
    """Parse the lines of an array.

    Args:
        header: Match of its first line: path, kind, dtype and shape.
        body: The other lines, without indentation.
        first: Number of the first line of the body, for messages.
    """
    path, kind, dtype, sizes = header.groups()
    shape = tuple(int(size) for size in sizes.split(",") if size)
    attributes = {}
    count = 0
    for line in takewhile(lambda line: line == _WEAK or _ATTRIBUTE.fullmatch(line), body):
        found = _ATTRIBUTE.fullmatch(line)
        attributes[found[1] if found else _WEAK] = found[2] if found else ""
        count += 1
    elements = body[count:]
    # The bits of a PRNG key are uint32 words; its dtype, e.g. key<fry>, is unknown to NumPy.
    stored = np.dtype(np.uint32) if kind == "key" else dtype_of(dtype)
    data = b"".join(
        _parse_element(line, stored, first + count + place) for place, line in enumerate(elements)
    )
    leaf = Leaf(
        path=path,
        kind=kind,
        dtype=dtype,
        shape=shape,
        weak_type=_WEAK in attributes,
        sharding=attributes.get("sharding", ""),
        memory_kind=attributes.get("memory_kind", ""),
        data=data,
    )
    # After the elements, so that a missing line is reported as a wrong shape, not as an index.
    _check_indices(to_array(leaf), elements, first + count)
    return leaf


def _check_indices(array: NDArray[Any], elements: list[str], first: int) -> None:
    for place, index in enumerate(np.ndindex(array.shape)):
        prefix = f"[{','.join(map(str, index))}] " if index else ""
        if not elements[place].startswith(prefix):
            raise ValueError(f"line {first + place}: {elements[place]!r}, expected {prefix!r}")


def _parse_element(line: str, dtype: np.dtype[Any], number: int) -> bytes:
    words = re.sub(r"^\[[\d,]*\] ", "", line).split(" ")
    try:
        if dtype.kind in "biu" or _is_narrow_integer(dtype):
            (word,) = words
            return np.asarray(int(word)).astype(dtype).tobytes()
        width = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
        part = np.dtype(f"f{width}") if dtype.kind == "c" else dtype
        # A complex element is two pairs of decimal and bits.
        pairs = zip(words[::2], words[1::2], strict=True)
        data = b"".join(_parse_float(decimal, bits, part) for decimal, bits in pairs)
        (element,) = np.frombuffer(data, dtype)
        return np.asarray(element).tobytes()
    except (ValueError, OverflowError) as error:
        raise ValueError(f"line {number}: {line!r} is no {dtype.name} ({error})") from None


def _parse_float(decimal: str, bits: str, dtype: np.dtype[Any]) -> bytes:
    data = bytes.fromhex(bits)[::-1]
    if len(data) != dtype.itemsize:
        raise ValueError(f"{bits} has {len(data)} bytes, expected {dtype.itemsize}")
    element = np.frombuffer(data, dtype)[0]
    # NaNs are compared by their bits alone: a decimal does not show a payload.
    if not math.isnan(float(element)) and np.asarray(float(decimal)).astype(dtype) != element:
        raise ValueError(f"{decimal} is not {bits}")
    return data


def _read_indented(lines: list[str], start: int) -> list[str]:
    """Return the block of indented lines that begins at `start`, without its indentation."""
    found = takewhile(lambda line: line.startswith(_INDENT), lines[start:])
    return [line.removeprefix(_INDENT) for line in found]
