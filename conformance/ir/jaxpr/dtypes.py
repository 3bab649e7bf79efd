"""Element types: NumPy's and jax's names in the spelling of HLO."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

_SHORT: Final = {"float": "f", "int": "s", "uint": "u", "complex": "c", "bfloat": "bf"}
_NUMERIC = re.compile(r"(float|int|uint|complex|bfloat)([1-9]\d*)(?:_(e\d+m\d+\w*))?")
_OF_A_REF = re.compile(r"ref<(.+)>")


@cache
def hlo_dtype(name: str) -> str:
    """Return a dtype as HLO spells it; a name that HLO does not have is left as it is.

    Args:
        name: `float32`, `bool`, `float8_e4m3fn`, `key<fry>`, `ref<float32>` ...

    Returns:
        `f32`, `pred`, `f8e4m3fn`, `key<fry>`, `ref<f32>` ...
    """
    if name == "bool":
        return "pred"
    if inner := _OF_A_REF.fullmatch(name):
        return f"ref<{hlo_dtype(inner[1])}>"
    if numeric := _NUMERIC.fullmatch(name):
        return f"{_SHORT[numeric[1]]}{numeric[2]}{numeric[3] or ''}"
    return name
