"""The analysis of an IR text: its fingerprints, its facts and its canonical text."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.ir import hlo, jaxpr, mlir
from conformance.ir.fact_table import collect_facts
from conformance.ir.graph import IrSyntaxError
from conformance.ir.normal.forms import to_canonical, to_exact
from conformance.ir.normal.text import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from conformance.ir.graph import Module

PARSERS: Final[dict[str, Callable[[str], Module]]] = {
    "hlo": hlo.parse,
    "stablehlo": mlir.parse,
    "jaxpr": jaxpr.parse,
}
"""Parser by kind of IR."""

# How many characters show the kind of a text: a dump may begin with comments and aliases, and
# stripping a whole text would copy many megabytes.
_PREFIX_SIZE: Final = 4096


def parse_ir(text: str, kind: str) -> Module:
    """Parse the text of an IR.

    Args:
        text: HLO, StableHLO in the generic form, or a jaxpr as the worker writes it.
        kind: `hlo`, `stablehlo` or `jaxpr`.

    Returns:
        The module.

    Raises:
        IrSyntaxError: If the kind is unknown, or the text is of another kind or not understood.
    """
    parse = PARSERS.get(kind)
    if parse is None:
        raise IrSyntaxError(f"kind {kind!r}, expected one of {', '.join(PARSERS)}")
    # The parser of another kind would name a token on line 1, not the mistake: the wrong kind.
    detected = detect_kind(text)
    if detected not in {None, kind}:
        raise IrSyntaxError(
            f"{kind} line 1: got a text that begins like {detected}, expected {kind}"
        )
    return parse(text)


def detect_kind(text: str) -> str | None:
    """Return the kind of IR that a text begins like: `hlo`, `stablehlo`, `jaxpr` or None."""
    start = text[:_PREFIX_SIZE].lstrip()
    if start.startswith("HloModule"):
        return "hlo"
    # The worker writes jaxprs as JSON.
    if start.startswith("{"):
        return "jaxpr"
    # The pretty form as well: the error of the parser then asks for the generic form.
    if start.startswith(("module", '"builtin.module"', "#loc", "#sdy", "sdy.mesh")):
        return "stablehlo"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The fingerprints and facts of a text.

    Attributes:
        exact: Fingerprint of the exact form.
        canonical: Fingerprint of the canonical form.
        facts: See `conformance.ir.fact_table.collect_facts`.
        not_understood: Counts of the parts that were kept as text only, by description.
        text: The text of the canonical form, empty unless requested.
    """

    exact: str
    canonical: str
    facts: Mapping[str, Any]
    not_understood: Mapping[str, int] = field(default_factory=dict)
    text: str = ""


def analyse(text: str, kind: str, *, with_text: bool = False) -> Analysis:
    """Compute the fingerprints and the facts of a text.

    Args:
        text: The text.
        kind: `hlo`, `stablehlo` or `jaxpr`.
        with_text: Whether to print the canonical form.

    Raises:
        IrSyntaxError: If the text is not understood; the message names the line, or the function
            of this package that failed.
    """
    try:
        module = parse_ir(text, kind)
        exact = to_exact(module)
        # Before the canonical form, which rewrites the same graph and inlines fusions and calls.
        facts = collect_facts(module)
        canonical = to_canonical(module)
        # Printing hashes the module again, and most callers want only the fingerprints.
        printed = dumps(module) if with_text else ""
    except IrSyntaxError:
        raise
    except Exception as error:
        # A defect of ours on a strange module must not end a run of thousands of jobs.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.name}, line {frame.lineno}"
        raise IrSyntaxError(
            f"{kind}: the normal form broke in {where} ({type(error).__name__}: {error}); "
            "please report the module"
        ) from error
    return Analysis(
        exact=exact,
        canonical=canonical,
        facts=facts,
        # Read last: decoding kernels, a pass of the exact form, counts more of them.
        not_understood=dict(module.not_understood),
        text=printed,
    )
