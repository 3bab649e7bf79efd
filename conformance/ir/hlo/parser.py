"""From the text of an HLO module to its graph."""

from __future__ import annotations

import re

from conformance.ir.graph import Computation, IrSyntaxError, Module
from conformance.ir.hlo.attributes import Reader
from conformance.ir.hlo.bodies import Body, Shared
from conformance.ir.hlo.lexing import NAME, Unexpected, closing, parts, without_comments
from conformance.ir.hlo.lines import header, lines
from conformance.ir.hlo.origins import TABLES, Origins
from conformance.ir.hlo.shapes import Types

_HEADER = re.compile(rf"HloModule ({NAME})(.*)", re.DOTALL)
_COMPUTATION = re.compile(rf"(ENTRY\s+)?%?({NAME})\s*")
_PARAMETER = re.compile(rf"%?{NAME}: ")
_NAMED_AGAIN = re.compile(rf"\s*// {NAME}$")
"""After the brace that ends a computation, in what XLA dumps up to jax 0.5.0."""


def parse(text: str) -> Module:
    """Return the graph of an HLO module.

    Args:
        text: As `compiled.as_text()` or `HloModule.to_string()` print it, of any platform.

    Returns:
        The module; what is not known in it is counted in `not_understood`.

    Raises:
        IrSyntaxError: If the text is not an HLO module; the message names line and token.
    """
    number = 1
    try:
        head, first = header(text)
        reading = _Reading(head)
        for number, line in lines(text, first):
            reading.line(line, number)
        return reading.end()
    except Unexpected as error:
        message = f"got {error.got!r}, expected {error.expected}"
        raise IrSyntaxError(f"hlo line {error.line or number}: {message}") from None


class _Reading:
    """A module of which some lines are read."""

    def __init__(self, head: str) -> None:
        match = _HEADER.fullmatch(head)
        if match is None:
            raise Unexpected(head, "'HloModule name'")
        self._origins = Origins()
        types = Types()
        reader = Reader(types, self._origins)
        found, _ = reader.read(match[2])
        self._module = Module("hlo", match[1], Computation(""), found.items.copy())
        counts = self._module.not_understood
        counts.update([f"attribute {one} of the module" for one in found.unknown])
        self._shared = Shared(types, reader, counts, [])
        self._entry: Computation | None = None
        self._body: Body | None = None
        self._table = ""

    def line(self, line: str, number: int) -> None:
        """Take the next line."""
        if self._body is None:
            self._outside(line.strip())
        elif line.lstrip().startswith("}"):
            self._body.end(_NAMED_AGAIN.sub("", line.strip()[1:]))
            self._body = None
        else:
            self._body.line(line, number)

    def end(self) -> Module:
        """Return the module, instructions linked to the computations that they call."""
        if self._body is not None:
            raise Unexpected("end of text", f"'}}' of computation {self._body.computation.name}")
        if self._entry is None:
            raise Unexpected("end of text", "a computation marked ENTRY")
        self._module.entry = self._entry
        by_name = self._module.computations
        for caller, bodies in self._shared.calls:
            try:
                caller.bodies = tuple([(role, by_name[name]) for role, name in bodies])
            except KeyError as error:
                expected = "the name of a computation"
                raise Unexpected(error.args[0], expected, caller.line) from None
        return self._module

    def _outside(self, line: str) -> None:
        """Take a line between computations."""
        if not line or line.startswith("//"):
            return
        if line in TABLES:
            self._table = line
        elif self._table and line[0].isdigit():
            self._origins.row(self._table, line)
        else:
            self._computation(line)

    def _computation(self, line: str) -> None:
        """Begin a computation: `ENTRY %main (x: f32[]) -> f32[] {`."""
        match = _COMPUTATION.match(line)
        if match is None or not line.endswith("{"):
            raise Unexpected(line, "a computation, 'name (parameters) -> type {'")
        entry, name = match.groups()
        if name in self._module.computations:
            raise Unexpected(name, "each computation once")
        if signature := line[match.end() : -1].strip():
            self._check_signature(signature)
        found = self._module.computations[name] = Computation(name)
        if entry:
            if self._entry is not None:
                raise Unexpected("ENTRY", "one entry")
            self._entry = found
        self._body = Body(found, self._shared)

    def _check_signature(self, text: str) -> None:
        """Check that `(x: f32[], y: s32[2]) -> f32[]` is what it should be."""
        types = self._shared.types
        text = without_comments(text)
        if not text.startswith("("):
            raise Unexpected(text, "'(parameters) -> type {'")
        end = closing(text, 0)
        for part in parts(text[1 : end - 1]):
            match = _PARAMETER.match(part)
            if match is None:
                raise Unexpected(part, "'name: type'")
            types[part[match.end() :]]
        arrow, _, result = text[end:].lstrip().partition(" ")
        if arrow != "->":
            raise Unexpected(arrow, "'->'")
        types[result]
