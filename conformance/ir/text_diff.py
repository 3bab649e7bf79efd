"""The difference of two IR texts, each as observed or in the canonical form of goldens."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING

from conformance.ir.analysis import parse_ir
from conformance.ir.difference import diff_modules
from conformance.ir.excerpts import Excerpts
from conformance.ir.graph import IrSyntaxError
from conformance.ir.normal.text import is_canonical, loads

if TYPE_CHECKING:
    from conformance.ir.change import IrDiff
    from conformance.ir.graph import Module


@dataclass(frozen=True, slots=True)
class IrText:
    """A text to compare, as observed or in the canonical form of goldens.

    Attributes:
        text: The text.
        kind: `hlo`, `stablehlo` or `jaxpr`.
    """

    text: str
    kind: str

    def module(self) -> Module:
        """Parse the text.

        Raises:
            IrSyntaxError: If it is not understood; the message names the line.
        """
        if is_canonical(self.text):
            return loads(self.text)
        return parse_ir(self.text, self.kind)

    def excerpts(self) -> Excerpts:
        """Return the source of quoted lines."""
        return Excerpts(self.text, "canonical" if is_canonical(self.text) else self.kind)


def diff_texts(a: IrText, b: IrText) -> IrDiff:
    """Compare two texts of one kind.

    Raises:
        IrSyntaxError: If one is not understood, or the comparison itself fails.
    """
    try:
        return diff_modules(a.module(), b.module(), a.excerpts(), b.excerpts())
    except IrSyntaxError:
        raise
    except Exception as error:
        # A defect of ours on a single module must not end the comparison of two runs.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise IrSyntaxError(
            f"{a.kind}: the comparison broke in {frame.name}, line {frame.lineno} "
            f"({type(error).__name__}: {error}); please report the modules"
        ) from error
