"""Reading a text of any kind: which parser, and what kind a text is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.ir import hlo, jaxpr, mlir
from conformance.ir.graph import IrSyntaxError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.graph import Module

PARSERS: Final[dict[str, Callable[[str], Module]]] = {
    "hlo": hlo.parse,
    "stablehlo": mlir.parse,
    "jaxpr": jaxpr.parse,
}
"""Parser by kind of IR."""

_LOOK: Final = 4096


def read(text: str, kind: str) -> Module:
    """Parse a text.

    Args:
        text: The text.
        kind: `hlo`, `stablehlo` or `jaxpr`.

    Returns:
        Its module.

    Raises:
        IrSyntaxError: If the kind is unknown, the text is of another kind or not understood.
    """
    parse = PARSERS.get(kind)
    if parse is None:
        raise IrSyntaxError(f"kind {kind!r}, expected one of {', '.join(PARSERS)}")
    looks = kind_of(text)
    if looks not in {None, kind}:
        raise IrSyntaxError(f"{kind} line 1: got what looks like {looks}, expected {kind}")
    return parse(text)


def kind_of(text: str) -> str | None:
    """Say what kind of IR a text looks like.

    Args:
        text: The text.

    Returns:
        `hlo`, `stablehlo` or `jaxpr`; None if it looks like none of them.
    """
    start = text[:_LOOK].lstrip()
    if start.startswith("HloModule"):
        return "hlo"
    if start.startswith("{"):
        return "jaxpr"
    if start.startswith(("module", '"builtin.module"', "#loc", "#sdy", "sdy.mesh")):
        return "stablehlo"
    return None
