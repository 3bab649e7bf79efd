"""Examples and descriptions of strategies as JSON, between a job and the example server.

The two ends have different releases of Python and NumPy, so that nothing is pickled.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from conformance.kit.strategies import Strategy

if TYPE_CHECKING:
    from collections.abc import Callable

_PLAIN = (bool, int, float, str)
"""Types that JSON has, as Python reads and writes it: with NaN, infinities and long integers."""


def encode(value: Any) -> Any:
    """Return a value as JSON data.

    Args:
        value: Plain data: None, numbers, texts, NumPy arrays, scalars and dtypes, strategies, and
            lists, tuples and dictionaries of them.

    Raises:
        TypeError: If the value has something else; the message describes it.
    """
    return value if value is None or type(value) in _PLAIN else _encode_object(value)


def _encode_object(value: Any) -> dict[str, Any]:
    encoded: dict[str, Any] = {}
    if isinstance(value, Strategy):
        encoded["strategy"] = [value.name, encode(value.args), encode(dict(value.kwargs))]
    elif type(value) in {list, tuple}:
        encoded[type(value).__name__] = [encode(item) for item in value]
    elif type(value) is dict:
        encoded["dict"] = [[encode(key), encode(item)] for key, item in value.items()]
    elif type(value) is complex:
        encoded["complex"] = [value.real, value.imag]
    elif isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "OSUMm":
        # The name of a dtype does not have its byte order.
        native = np.asarray(value, value.dtype.newbyteorder("="))
        data = base64.b64encode(native.tobytes()).decode()
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        encoded[kind] = [value.dtype.name, list(value.shape), data]
    elif isinstance(value, np.dtype) or _is_scalar_type(value):
        encoded["dtype"] = np.dtype(value).name
    else:
        # Without its text, which may have an address.
        raise TypeError(f"a {type(value).__name__} is no plain data")
    return encoded


def _is_scalar_type(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, np.generic)


def decode(data: Any, make_strategy: Callable[[str, Any, Any], Any] = Strategy) -> Any:
    """Return the value of JSON data.

    Args:
        data: Result of `encode`.
        make_strategy: Makes a strategy from name and arguments.

    Raises:
        ValueError: If the data are malformed.
    """
    if not isinstance(data, dict):
        return data
    ((kind, content),) = data.items()
    value: Any
    match kind, content:
        case "list" | "tuple", items:
            decoded = (decode(item, make_strategy) for item in items)
            value = list(decoded) if kind == "list" else tuple(decoded)
        case "dict", items:
            value = {decode(key): decode(item, make_strategy) for key, item in items}
        case "complex", [real, imag]:
            value = complex(real, imag)
        case "array" | "scalar", [name, shape, text]:
            # A copy, because `frombuffer` returns an array that cannot be written.
            array = np.frombuffer(base64.b64decode(text), find_dtype(name)).reshape(shape).copy()
            value = array if kind == "array" else array[()]
        case "dtype", name:
            value = find_dtype(name)
        case "strategy", [name, args, kwargs]:
            made = (decode(part, make_strategy) for part in (args, kwargs))
            value = make_strategy(name, *made)
        case _:
            raise ValueError(f"{data} is no encoded value")
    return value


def find_dtype(name: str) -> np.dtype[Any]:
    """Return the dtype of a name, also of `ml_dtypes`."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # which few cases use

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found
