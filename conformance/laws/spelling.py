"""Examples as Python code, equal on every host, release of NumPy and Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping


def spell_example(example: Mapping[str, Any]) -> str:
    """Return an example as assignments in one line.

    Args:
        example: Values by parameter: plain data, see `conformance.worker.example_codec`.

    Returns:
        For example `x = np.array([0.0, np.nan], "float32"); n = 3`.
    """
    return "; ".join(f"{name} = {spell_value(value)}" for name, value in example.items())


def spell_value(value: Any) -> str:
    """Return a value as a Python expression, in which NumPy is `np`."""
    match value:
        case np.ndarray() | np.generic():
            text = _spell_array(np.asarray(value))
            # The scalar of an array without axes.
            text += "[()]" if isinstance(value, np.generic) else ""
        case list():
            text = f"[{', '.join(map(spell_value, value))}]"
        case tuple():
            text = f"({', '.join(map(spell_value, value))}{',' * (len(value) == 1)})"
        case dict():
            items = (f"{spell_value(key)}: {spell_value(item)}" for key, item in value.items())
            text = f"{{{', '.join(items)}}}"
        case float() | complex():
            text = _spell_number(value)
        case _:
            text = repr(value)
    return text


def _spell_array(array: np.ndarray[Any, Any]) -> str:
    if array.size == 0:
        return f'np.zeros({array.shape}, "{array.dtype.name}")'
    return f'np.array({_spell_nested(array)}, "{array.dtype.name}")'


def _spell_nested(array: np.ndarray[Any, Any]) -> str:
    if array.ndim == 0:
        return _spell_number(array[()])
    return f"[{', '.join(map(_spell_nested, array))}]"


def _spell_number(value: Any) -> str:
    if isinstance(value, (complex, np.complexfloating)):
        parts = (_spell_number(value.real), _spell_number(value.imag))
        return f"complex({', '.join(parts)})"
    # The text of a NumPy number is the shortest one that is read as the same number.
    text = str(value)
    return {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}.get(text, text)
