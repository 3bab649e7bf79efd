"""The assertion at the end of a file of its own: a value against its reference, leaf by leaf.

It says what `conformance.judge.values.compare_reference` does, of the kinds of leaves at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from conformance.judge.tolerance import defaults
from conformance.judge.ulp import is_float
from conformance.model.codec import CorruptValueError, dtype_of
from conformance.triage.repro.surroundings import Piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from conformance.model.value import Leaf, Value

_PYTHON: Final = {"float": "float64", "complex": "complex128"}
_TEXT: Final = frozenset({"str", "bytes", "NoneType"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerances:
    """What a case states of tolerance; None is the default by dtype.

    Attributes:
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        ulp: Units in the last place that take the place of both, by path of the leaf.
    """

    rtol: float | None = None
    atol: float | None = None
    ulp: Mapping[str, int] = field(default_factory=dict)


def check_piece(values: Iterable[Value | None], stated: Tolerances) -> Piece:
    """Return functions that compare a value with its reference.

    Args:
        values: What was observed and what it should be, where there is a value.
        stated: What the case states of tolerance.

    Returns:
        `check(seen, expected)`, which raises AssertionError, and what it needs.
    """
    leaves = [leaf for value in values if value is not None for leaf in value.leaves]
    kinds = set(map(_kind, leaves)) or {"float", "exact"}
    floats = {_PYTHON.get(leaf.dtype, leaf.dtype) for leaf in leaves if _kind(leaf) == "float"}
    parts = [_CHECK]
    if "text" in kinds:
        parts.append(_TEXTS)
    parts.append(_SHAPES)
    if "key" in kinds:
        parts.append(_KEYS)
    if floats or "complex" in kinds:
        parts.append(_FLOATS)
        parts += [_IN_ULP] if stated.ulp else []
        parts.append(_WIDE)
        parts.append(_limits(stated))
    parts.append(_EXACT)
    table = _ulp_table(stated.ulp) + (_table(floats, stated) if floats else "")
    imports = ["import numpy as np"]
    imports += ["import jax.numpy as jnp"] if floats else []
    return Piece(table + "\n".join(parts), tuple(imports))


def _kind(leaf: Leaf) -> str:
    if leaf.kind == "key":
        return "key"
    if leaf.kind == "python" and leaf.dtype not in {"bool", "int", "float", "complex"}:
        return "text"
    try:
        dtype = dtype_of(_PYTHON.get(leaf.dtype, leaf.dtype))
    except CorruptValueError:
        return "text"
    return "float" if dtype.kind == "c" or is_float(dtype) else "exact"


def _ulp_table(ulp: Mapping[str, int]) -> str:
    if not ulp:
        return ""
    lines = [f"    {path!r}: {distance}," for path, distance in ulp.items()]
    return "\n".join(["ULP = {  # how far leaves may be off", *lines, "}", "", "", _STEPS, "", ""])


def _table(floats: set[str], stated: Tolerances) -> str:
    if stated.rtol is not None:
        return ""
    names = sorted(floats | ({"float32"} if floats & {"float64", "complex128"} else set()))
    lines = ["TOLERANCES = {  # relative to the element, and to the largest of its array"]
    for name in names:
        rtol, scale = defaults(dtype_of(name))
        lines.append(f'    "{name}": ({rtol!r}, {scale!r}),')
    return "\n".join([*lines, "}", "", "", ""])


def _limits(stated: Tolerances) -> str:
    lines: list[str] = []
    if stated.rtol is None:
        found = "rtol, _" if stated.atol is not None else "rtol, scale"
        lines.append(f"        {found} = TOLERANCES[str(dtype)]")
    rtol = "rtol" if stated.rtol is None else repr(stated.rtol)
    if stated.atol is not None:
        atol = repr(stated.atol)
    elif stated.rtol is not None:
        atol = "0"
    else:
        atol = "scale * largest"
        lines.append(
            "        largest = np.abs(expected).max(initial=0, where=np.isfinite(expected))"
        )
    lines.append(
        f"        np.testing.assert_allclose(seen, expected, {rtol}, {atol}, err_msg=path)"
    )
    return "\n".join([*lines, "        return"])


_CHECK: Final = '''\
def check(seen, expected):
    """Raise AssertionError unless every leaf of a result is what it should be."""
    leaves, wanted = leaves_of(seen), leaves_of(expected)
    assert leaves.keys() == wanted.keys(), f"leaves {[*leaves]}, expected {[*wanted]}"
    for path, leaf in leaves.items():
        check_leaf(path, leaf, wanted[path])


def leaves_of(tree):
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda leaf: leaf is None)
    return {f"out{jax.tree_util.keystr(path)}": leaf for path, leaf in leaves}


def check_leaf(path, seen, expected):
    """NumPy's own float64, complex128 and int64 state numbers, whatever the dtype."""'''
_TEXTS: Final = """\
    if any(isinstance(one, (str, bytes, type(None))) for one in (seen, expected)):
        same = type(seen) is type(expected) and seen == expected
        assert same, f"{path} is {seen!r}, expected {expected!r}"
        return"""
_SHAPES: Final = '''\
    shape, dtype = np.shape(seen), getattr(seen, "dtype", np.asarray(seen).dtype)
    assert shape == np.shape(expected), f"{path} has shape {shape}, expected {np.shape(expected)}"
    wanted = getattr(expected, "dtype", dtype)
    numbers = not isinstance(expected, jax.Array) and wanted in ("float64", "complex128", "int64")
    assert numbers or wanted == dtype, f"{path} is {dtype}, expected {wanted}"'''
_KEYS: Final = """\
    if jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        seen, expected = jax.random.key_data(seen), jax.random.key_data(expected)"""
_FLOATS: Final = """\
    seen, expected = np.asarray(seen), np.asarray(expected)
    if jnp.issubdtype(seen.dtype, jnp.inexact):
        expected = expected if expected.dtype.kind == "c" else expected.astype(seen.dtype)"""
_IN_ULP: Final = """\
        if path in ULP:
            off = np.abs(steps(seen) - steps(expected))
            near = (off <= ULP[path]) | (np.isnan(seen) & np.isnan(expected))
            assert near.all(), f"{path} is {off.max()} ulp off, expected at most {ULP[path]}"
            return"""
_STEPS: Final = '''\
def steps(numbers):
    """Return how many numbers of a float type lie between 0 and each of some."""
    kind = f"i{numbers.dtype.itemsize}"
    bits = numbers.view(kind).astype("i8")
    return np.where(bits < 0, np.iinfo(kind).min - bits, bits)
'''
_WIDE: Final = """\
        wide = complex if "c" in (seen.dtype.kind, expected.dtype.kind) else float
        seen, expected = seen.astype(wide), expected.astype(wide)"""
_EXACT: Final = "    np.testing.assert_array_equal(seen, expected, err_msg=path)"


def shortened(value: Value, most: int = 3) -> Iterator[str]:
    """Yield a line for each of the first leaves of a value, in few characters.

    Args:
        value: Any value.
        most: Leaves to tell of.
    """
    for leaf in value.leaves[:most]:
        yield f"{leaf.path} = {_told(leaf)}"
    if len(value.leaves) > most:
        yield f"and {len(value.leaves) - most} leaves more"


def _told(leaf: Leaf) -> str:
    if leaf.kind == "python":
        return leaf.data.decode("utf-8", "replace")[:160]
    try:
        array = np.frombuffer(leaf.data, dtype_of(leaf.dtype)).reshape(leaf.shape)
    except (CorruptValueError, ValueError):
        return f"{leaf.dtype}{list(leaf.shape)}"
    text = np.array2string(array, precision=6, threshold=8, edgeitems=3, separator=", ")
    return f"{' '.join(text.split())[:160]} ({leaf.dtype}{list(leaf.shape)})"
