"""Python literals for the data of a jaxpr: numbers, dtypes, tuples, specs; and unique names."""

from __future__ import annotations

import builtins
import json
import keyword
import re
from math import isfinite
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

IMPORTS: Final = {
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "np": "import numpy as np",
    "lax": "from jax import lax",
    "NamedSharding": "from jax.sharding import NamedSharding",
    "P": "from jax.sharding import PartitionSpec as P",
    "compute_on": "from jax.experimental.compute_on import compute_on",
    "set_xla_metadata": "from jax.experimental.xla_metadata import set_xla_metadata",
    "threefry2x32_p": "from jax.extend.random import threefry2x32_p",
}
"""Imports by the names that the written code may use."""
SPECIAL: Final = {"nan": "jnp.nan", "inf": "jnp.inf", "-inf": "-jnp.inf"}
_NO_WORD = re.compile(r"\W+")
_NUMBER = re.compile(r"_\d+$")
_DTYPES: Final = re.compile(r"bool|u?int\d+|float\d+\w*|bfloat16|complex\d+")
_AS_NUMPY: Final = frozenset({"float16", "float32"})


class Names:
    """Makes unique names."""

    def __init__(self) -> None:
        self._taken: set[str] = {*IMPORTS, "env"}
        self._counts: dict[str, int] = {}

    def reserve(self, wanted: str) -> str:
        """Return an unused name: the wanted name, with a number if it is taken."""
        # Without its number, or `x_2` would become `x_2_2`.
        base = name = make_identifier(_NUMBER.sub("", wanted))
        while name in self._taken:
            self._counts[base] = self._counts.get(base, 1) + 1
            name = f"{base}_{self._counts[base]}"
        self._taken.add(name)
        return name


def make_identifier(wanted: str) -> str:
    """Return a name as an identifier that hides no builtin."""
    name = _NO_WORD.sub("_", wanted).strip("_") or "value"
    if name[0].isdigit():
        return f"v{name}"
    return f"{name}_" if keyword.iskeyword(name) or hasattr(builtins, name) else name


def render_tuple(parts: Iterable[str]) -> str:
    """Return the text of a tuple."""
    items = list(parts)
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def render_items(parts: Sequence[str]) -> str:
    """Return the only text, or the text of a tuple."""
    return parts[0] if len(parts) == 1 else render_tuple(parts)


def render_plain(value: Any) -> str:
    """Return the text of plain data, with tuples for lists."""
    if isinstance(value, list):
        return render_tuple(map(render_plain, value))
    # Double quotes, as Ruff has them.
    return json.dumps(value) if isinstance(value, str) else repr(value)


def render_axes(names: Any) -> str:
    """Return the text of axis names: of a string if there is only one."""
    return render_plain(names[0] if isinstance(names, list) and len(names) == 1 else names)


def render_dtype(name: str) -> str | None:
    """Return the text of a dtype, None if it has no public name."""
    if not _DTYPES.fullmatch(name):
        return None
    return "jnp.bool_" if name == "bool" else f"jnp.{name}"


def render_number(value: Any, of: str) -> str | None:
    """Return the text of a number in Python, None if the value is not a number.

    Args:
        value: The number as `conformance.worker.jaxprs` writes it, rounded to its dtype.
        of: Its dtype: the result is the shortest text of the same number in this dtype.
    """
    match value:
        case ["complex", real, imaginary]:
            half = "float32" if of == "complex64" else "float64"
            parts = (render_number(real, half), render_number(imaginary, half))
            return None if None in parts else f"complex({parts[0]}, {parts[1]})"
        case str():
            return SPECIAL.get(value)
        case bool() | int() | float():
            return _render_real(value, of)
        case _:
            return None


def _render_real(value: float, of: str) -> str:
    if of == "bool":
        return repr(bool(value))
    if of.startswith(("int", "uint")):
        return repr(int(value))
    # NumPy prints the shortest digits of the dtype; a finite double may be infinite as float16.
    if of in _AS_NUMPY and isfinite(np.dtype(of).type(value)):
        return repr(float(str(np.dtype(of).type(value))))
    return repr(float(value))


def render_spec(data: Any) -> str | None:
    """Return the text of a PartitionSpec, None if it is not supported.

    Args:
        data: Axis names for each dimension; up to jax 0.6.0 pairs of a dimension and its axes.
    """
    if not isinstance(data, list):
        return None
    if data and all(_is_named_dimension(part) for part in data):
        axes_of = dict(data)
        data = [axes_of.get(number, []) for number in range(max(axes_of) + 1)]
    parts: list[str] = []
    for part in data:
        if part == "unconstrained":
            parts.append("P.UNCONSTRAINED")
        # No public spelling of these exists on all releases.
        elif not isinstance(part, list) or (part and part[0] in {"unreduced", "reduced"}):
            return None
        else:
            parts.append(render_axes(part) if part else "None")
    return f"P({', '.join(parts)})"


def _is_named_dimension(part: Any) -> bool:
    match part:
        case [int(), _]:
            return True
        case _:
            return False
