"""StableHLO (and what stands beside it in a module) in MLIR's generic form, read into the graph.

Its regions see the values around them: an operand of an instruction in a body may be an
instruction of a computation that encloses it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.mlir.reader import Reader

if TYPE_CHECKING:
    from conformance.ir.graph import Module

__all__ = ["parse"]


def parse(text: str) -> Module:
    """Return the graph of a module.

    Args:
        text: What `operation.get_asm(print_generic_op_form=True, large_elements_limit=None,
            enable_debug_info=True)` says, debug information being optional.

    Raises:
        IrSyntaxError: If the text is no module in that form; the message names line and token.
    """
    return Reader(text).read()
