"""Excerpts: lines of a text, quoted in reports without their noise."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from conformance.ir.fingerprint import spell_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.ir.graph import Instruction

# A rewrite may have hundreds of edits; a few lines show its kind.
_MOST: Final = 6
_WIDTH: Final = 220
# Metadata may quote braces; a `backend_config` may hold a kernel of many kilobytes in base64.
_NOISE: Final = re.compile(
    r',? (?:metadata|original_value|statistics)=\{(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\}'
    r"|,? (?:backend_config)=\{.*\}$"
    r"|,? operand_layout_constraints=\{[^=]*\}(?=,|$)"
    r"|(?<=\S) loc\(.*\)$"
)


class Excerpts:
    """Quotes lines of a text.

    Args:
        text: The text.
        kind: `hlo` and `stablehlo` are quoted as written, anything else from the graph.
    """

    def __init__(self, text: str, kind: str) -> None:
        # The JSON of a jaxpr is for machines, so its instructions are printed instead.
        self._text = text if kind in {"hlo", "stablehlo"} else ""
        # Made at the first quotation: the diff of equal modules quotes nothing.
        self._starts: list[int] | None = None

    def quote_lines(self, instructions: Iterable[Instruction]) -> tuple[str, ...]:
        """Return the first lines of instructions, in the order of the text."""
        unique = {id(node): node for node in instructions}
        ordered = sorted(unique.values(), key=lambda node: node.line)
        lines = [self.quote_line(node) for node in ordered[:_MOST]]
        if len(ordered) > _MOST:
            lines.append(f"... {len(ordered) - _MOST} more")
        # Without metadata, lines of different computations may be equal.
        return tuple(dict.fromkeys(lines))

    def quote_line(self, instruction: Instruction) -> str:
        """Return the line of an instruction, without noise and shortened."""
        return quote(self.find_line(instruction))

    def find_line(self, instruction: Instruction) -> str:
        """Return the line of an instruction, unchanged."""
        raw = self._find_raw(instruction.line) if self._text and instruction.line else ""
        if not raw:
            operands = ", ".join(f"%{node.name.lstrip('%')}" for node in instruction.operands)
            attributes = [f"{k}={v}" for k, v in instruction.attributes.items()]
            head = f"%{instruction.name.lstrip('%')} = {spell_type(instruction.type)}"
            raw = ", ".join([f"{head} {instruction.op}({operands})", *attributes])
        return raw

    def _find_raw(self, number: int) -> str:
        if self._starts is None:
            self._starts = [0, *(m.end() for m in re.finditer("\n", self._text))]
        if number > len(self._starts):
            return ""
        start = self._starts[number - 1]
        end = self._text.find("\n", start)
        return self._text[start : end if end >= 0 else len(self._text)]


def quote(line: str) -> str:
    """Return a line without its noise, cut to the width of a quotation."""
    text = _NOISE.sub("", line.strip())
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
