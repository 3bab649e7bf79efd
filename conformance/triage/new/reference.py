"""References proposed for a case: an observed value as an expression. Pure."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from conformance.model.value import to_array, to_python
from conformance.triage.repro.layout import format_literal

if TYPE_CHECKING:
    from conformance.model.value import Leaf, Value

MAX_ELEMENTS: Final = 64
"""Maximum number of elements of a written value: a longer value would not be reviewed."""
_KEY: Final = re.compile(r"\[('[^']*'|\d+)\]")
_PATH: Final = re.compile(rf"(?:{_KEY.pattern})*")
_SMALL, _LARGE = 1e-4, 1e6
"""Numbers between these are written without an exponent."""
_NUMPY_DTYPES: Final = frozenset({
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16",
    "float32", "float64", "complex64", "complex128",
})  # fmt: skip
"""Dtypes that NumPy itself has."""
# Shorter hexadecimal numbers are more likely data.
_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{5,}\b")


def render_value(value: Value) -> str:
    """Return an expression for a value; empty if it is too long, or has no literal.

    Tuples become lists: the comparison with a reference does not distinguish them.

    Args:
        value: The value.
    """
    if sum(map(_count_written, value.leaves)) > MAX_ELEMENTS:
        return ""
    leaves = [(leaf.path.removeprefix("out"), _render_leaf(leaf)) for leaf in value.leaves]
    # Other keys, e.g. attributes of a dataclass, have no literal.
    if not all(text and _PATH.fullmatch(path) for path, text in leaves):
        return ""
    return _render_tree([(_KEY.findall(path), text) for path, text in leaves])


def _render_tree(leaves: list[tuple[list[str], str]]) -> str:
    """Return lists and mappings of leaves, each given by its keys; empty if an index is missing."""
    if not leaves or not leaves[0][0]:
        return leaves[0][1] if leaves else ""
    children: dict[str, list[tuple[list[str], str]]] = {}
    for (key, *keys), text in leaves:
        children.setdefault(key, []).append((keys, text))
    items = {key: _render_tree(found) for key, found in children.items()}
    if not any(map(str.isdigit, items)):
        pairs = (f"{format_literal(key[1:-1])}: {text}" for key, text in items.items())
        return f"{{{', '.join(pairs)}}}"
    # An empty container has no leaves, so its index may be missing.
    listed = [items.get(str(number), "") for number in range(len(items))]
    return f"[{', '.join(listed)}]" if all(listed) else ""


def _count_written(leaf: Leaf) -> int:
    """Return how many elements are written: one for a large array with equal elements."""
    size = math.prod(leaf.shape)
    if size <= MAX_ELEMENTS or leaf.kind != "array":
        return size
    array = to_array(leaf)
    return 1 if (array == array.flat[0]).all() else size


def _render_leaf(leaf: Leaf) -> str:
    if leaf.kind == "python":
        value = to_python(leaf)
        # The `repr` of `inf` and `nan` is no expression.
        is_finite = not isinstance(value, float) or math.isfinite(value)
        return format_literal(value) if is_finite else f'float("{value}")'
    # NumPy has neither keys nor the dtypes of `ml_dtypes`.
    if leaf.kind == "key" or leaf.dtype not in _NUMPY_DTYPES:
        return ""
    array = to_array(leaf)
    # NumPy 1.24 to 1.26 have no `np.bool`.
    dtype = "bool_" if leaf.dtype == "bool" else leaf.dtype
    if not array.shape:
        return f"np.{dtype}({_render_elements(array)})"
    # Nested empty lists lose the sizes of trailing dimensions.
    if not array.size:
        return f"np.zeros({array.shape}, np.{dtype})"
    if array.size > MAX_ELEMENTS:
        return f"np.full({array.shape}, {_render_elements(array.flat[0])}, np.{dtype})"
    return f"np.array({_render_elements(array)}, np.{dtype})"


def _render_elements(array: np.ndarray[Any, Any]) -> str:
    """Return the elements by their shortest digits, as NumPy prints them."""
    if array.ndim:
        return f"[{', '.join(map(_render_elements, array))}]"
    element: Any = array[()]
    if isinstance(element, np.complexfloating):
        return f"complex({_render_float(element.real)}, {_render_float(element.imag)})"
    # The `repr` of a NumPy number depends on the version of NumPy: `np.float32(0.1)` from 2.0 on.
    return _render_float(element) if isinstance(element, np.floating) else repr(array.item())


def _render_float(number: np.floating[Any]) -> str:
    size = abs(float(number))
    if not math.isfinite(size):
        sign = "-" if float(number) < 0 else ""
        return "np.nan" if math.isnan(size) else f"{sign}np.inf"
    # NumPy gives the shortest digits of the dtype; `float` would give those of float64.
    if size == 0 or _SMALL <= size < _LARGE:
        return np.format_float_positional(number, trim="0")
    return np.format_float_scientific(number)


def has_address(value: Value) -> bool:
    """Return whether a value is a text with a memory address, which differs in each process.

    Args:
        value: The value.
    """
    return any(
        leaf.kind == "python" and _ADDRESS.search(leaf.data.decode("utf-8", "replace"))
        for leaf in value.leaves
    )
