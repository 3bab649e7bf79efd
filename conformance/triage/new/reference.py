"""A value that was seen, as an expression: a reference that is proposed. Pure."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.model.codec import to_array, to_python
from conformance.triage.repro.layout import quoted

if TYPE_CHECKING:
    from conformance.model.value import Leaf, Value

MOST: Final = 64
"""Elements of a value that is written out."""
_KEY: Final = re.compile(r"\[('[^']*'|\d+)\]")
_PATH: Final = re.compile(rf"(?:{_KEY.pattern})*")
_SMALL, _LARGE = 1e-4, 1e6
"""Between these numbers are written without an exponent."""
_WRITTEN: Final = frozenset({
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
})  # fmt: skip
"""What NumPy itself has a name for."""
_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{5,}\b")


def expression(value: Value) -> str:
    """Return an expression that gives a value; empty where there is none that is short.

    Lists stand for tuples, as they do where a reference is compared.

    Args:
        value: The value.
    """
    if sum(map(_written_elements, value.leaves)) > MOST:
        return ""
    leaves = [(leaf.path.removeprefix("out"), _leaf(leaf)) for leaf in value.leaves]
    if not all(text and _PATH.fullmatch(path) for path, text in leaves):
        return ""
    return _nested([(_KEY.findall(path), text) for path, text in leaves])


def _nested(leaves: list[tuple[list[str], str]]) -> str:
    """Return lists and mappings of leaves, each by its keys; empty where indices are missing."""
    if not leaves or not leaves[0][0]:
        return leaves[0][1] if leaves else ""
    inside: dict[str, list[tuple[list[str], str]]] = {}
    for (key, *keys), text in leaves:
        inside.setdefault(key, []).append((keys, text))
    items = {key: _nested(found) for key, found in inside.items()}
    if not any(map(str.isdigit, items)):
        pairs = (f"{quoted(key[1:-1])}: {text}" for key, text in items.items())
        return f"{{{', '.join(pairs)}}}"
    listed = [items.get(str(number), "") for number in range(len(items))]
    return f"[{', '.join(listed)}]" if all(listed) else ""


def _written_elements(leaf: Leaf) -> int:
    """Return how many elements are written: one of a large array in which all are the same."""
    size = math.prod(leaf.shape)
    if size <= MOST or leaf.kind != "array":
        return size
    array = to_array(leaf)
    return 1 if (array == array.flat[0]).all() else size


def _leaf(leaf: Leaf) -> str:
    if leaf.kind == "python":
        value = to_python(leaf)
        finite = not isinstance(value, float) or math.isfinite(value)
        return quoted(value) if finite else f'float("{value}")'
    if leaf.kind == "key" or leaf.dtype not in _WRITTEN:
        return ""
    array = to_array(leaf)
    kind = "bool_" if leaf.dtype == "bool" else leaf.dtype
    if not array.shape:
        return f"np.{kind}({_listed(array)})"
    if not array.size:
        return f"np.zeros({array.shape}, np.{kind})"
    if array.size > MOST:
        return f"np.full({array.shape}, {_listed(array.flat[0])}, np.{kind})"
    return f"np.array({_listed(array)}, np.{kind})"


def _listed(array: np.ndarray[Any, Any]) -> str:
    """Return the elements by their shortest digits, as NumPy prints them."""
    if array.ndim:
        return f"[{', '.join(map(_listed, array))}]"
    one: Any = array[()]
    if isinstance(one, np.complexfloating):
        return f"complex({_digits(one.real)}, {_digits(one.imag)})"
    return _digits(one) if isinstance(one, np.floating) else repr(array.item())


def _digits(one: np.floating[Any]) -> str:
    size = abs(float(one))
    if not math.isfinite(size):
        sign = "-" if float(one) < 0 else ""
        return "np.nan" if math.isnan(size) else f"{sign}np.inf"
    plain = size == 0 or _SMALL <= size < _LARGE
    return np.format_float_positional(one, trim="0") if plain else np.format_float_scientific(one)


def has_address(value: Value) -> bool:
    """Say whether a value is a text that is another in each process.

    Args:
        value: The value.
    """
    return any(
        leaf.kind == "python" and _ADDRESS.search(leaf.data.decode("utf-8", "replace"))
        for leaf in value.leaves
    )
