"""What the regions and symbols of an operation are for."""

from __future__ import annotations

from typing import Final

_REDUCERS = (
    "all_reduce", "reduce", "reduce_scatter", "reduce_window", "scatter", "sort", "map",
)  # fmt: skip
_ROLES: Final[dict[str, tuple[str, ...]]] = {
    "while": ("condition", "body"),
    "select_and_scatter": ("select", "scatter"),
    **dict.fromkeys(_REDUCERS, ("to_apply",)),
}
_BRANCHING = frozenset({"case", "if"})
_DIALECTS = frozenset({"stablehlo", "mhlo"})

CALLS: Final = {
    "func.call": ("callee", "callee"),
    "stablehlo.composite": ("decomposition", "decomposition"),
    "mhlo.composite": ("decomposition", "decomposition"),
    "stablehlo.custom_call": ("called_computations", "called"),
    "mhlo.custom_call": ("called_computations", "called"),
}
"""Operations that name functions: the attribute that does, and the role of what it names."""


def role_of(op: str, number: int) -> str:
    """Return the role of a region of an operation.

    Args:
        op: The operation, with its dialect.
        number: Number of the region.
    """
    dialect, _, name = op.partition(".")
    if dialect in _DIALECTS:
        if name in _BRANCHING:
            return f"branch {number}"
        roles = _ROLES.get(name, ())
        if number < len(roles):
            return roles[number]
    return f"region {number}"
