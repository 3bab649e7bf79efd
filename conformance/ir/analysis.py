"""All that is kept of one IR: its fingerprints, its facts, its text in the form `neutral`."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from conformance.ir.fact_table import fact_table
from conformance.ir.graph import IrSyntaxError
from conformance.ir.normal.forms import VERSION, to_neutral, to_structure
from conformance.ir.normal.text import dumps
from conformance.ir.reading import read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.ir.graph import Module


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What one text is, in normal form.

    Attributes:
        structure: Fingerprint of the form `structure`.
        neutral: Fingerprint of the form `neutral`.
        facts: See `conformance.ir.fact_table.fact_table`.
        not_understood: What was kept as text only, with how often it occurs.
        text: The form `neutral` as text, empty unless asked for.
    """

    structure: str
    neutral: str
    facts: Mapping[str, Any]
    not_understood: Mapping[str, int] = field(default_factory=dict)
    text: str = ""


def analyse(text: str, kind: str, *, with_text: bool = False) -> Analysis:
    """Bring a text into its normal forms.

    Args:
        text: The text.
        kind: `hlo`, `stablehlo` or `jaxpr`.
        with_text: Whether to print the form `neutral`.

    Returns:
        What is kept of it.

    Raises:
        IrSyntaxError: If the text is not understood; the message names the line, or what of our
            own broke on it.
    """
    try:
        return _analysed(read(text, kind), with_text=with_text)
    except IrSyntaxError:
        raise
    except Exception as error:
        # One odd module must not end a run of thousands of jobs.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{frame.name}, line {frame.lineno}"
        raise IrSyntaxError(
            f"{kind}: the normal form broke in {where} ({type(error).__name__}: {error}); "
            "please report the module"
        ) from error


def _analysed(module: Module, *, with_text: bool) -> Analysis:
    structure = to_structure(module)
    facts = fact_table(module)
    neutral = to_neutral(module)
    return Analysis(
        structure=structure,
        neutral=neutral,
        facts=facts,
        not_understood=dict(module.not_understood),
        text=dumps(module, VERSION) if with_text else "",
    )
