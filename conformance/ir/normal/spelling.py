"""One spelling of operations for HLO and StableHLO; jaxprs of all releases spelled alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.ir.jaxpr.spelling import normalise_spelling

if TYPE_CHECKING:
    from conformance.ir.graph import Module

_PREFIXES: Final = ("stablehlo.", "mhlo.", "func.")


def spell_alike(module: Module) -> None:
    """Name operations as HLO does, `all-reduce` for `stablehlo.all_reduce`.

    A jaxpr's primitives keep their names, those of another release become today's.

    Args:
        module: Rewritten in place.
    """
    if module.kind == "jaxpr":
        normalise_spelling(module)
    if module.kind == "stablehlo":
        short: dict[str, str] = {}
        for instruction in module.walk():
            op = instruction.op
            found = short.get(op)
            if found is None:
                found = short[op] = _short(op)
            instruction.op = found


def _short(op: str) -> str:
    for prefix in _PREFIXES:
        if op.startswith(prefix):
            return op.removeprefix(prefix).replace("_", "-")
    return op
