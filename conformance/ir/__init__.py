"""The IRs of a program: jaxprs, StableHLO and optimised HLO, parsed, normalised and compared.

`facts(text, kind)` returns the facts of a module in compiler-neutral terms, `diff(a, b, kind)` the
differences of two modules as patterns.
"""

from __future__ import annotations

from typing import Any

from conformance.ir.analysis import read
from conformance.ir.change import Change, IrDiff
from conformance.ir.difference import diff
from conformance.ir.fact_table import collect_facts
from conformance.ir.graph import IrSyntaxError
from conformance.ir.normal.forms import to_exact

__all__ = ["Change", "IrDiff", "IrSyntaxError", "diff", "facts"]


def facts(text: str, kind: str = "hlo") -> dict[str, Any]:
    """Return the facts of a module.

    Args:
        text: HLO, StableHLO in the generic form, or a jaxpr as the worker writes it.
        kind: `hlo`, `stablehlo` or `jaxpr`.

    Returns:
        Plain data, see `conformance.ir.fact_table.collect_facts`.

    Raises:
        IrSyntaxError: If the text is not understood; the message names the line.
    """
    module = read(text, kind)
    to_exact(module)
    return collect_facts(module)
