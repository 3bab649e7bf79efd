"""The parser of HLO text: line by line, from the header to the end of the last computation."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from conformance.ir.graph import Computation, Instruction, IrSyntaxError, Module, Opaque, Tensor
from conformance.ir.hlo.attributes import AttributeReader
from conformance.ir.hlo.lexing import (
    NAME,
    HloTextError,
    find_closing,
    match_all,
    number_lines,
    parse_integer,
    split_header,
    split_parts,
    strip_comments,
)
from conformance.ir.hlo.origins import TABLES, Origins
from conformance.ir.hlo.values import TENSOR, HloTypes, read_literal

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Path, Type, Value

_HEADER = re.compile(rf"HloModule ({NAME})(.*)", re.DOTALL)
_COMPUTATION = re.compile(rf"(ENTRY\s+)?%?({NAME})\s*")
_PARAMETER = re.compile(rf"%?{NAME}: ")
# A comment after the brace that ends a computation, in dumps of XLA up to jax 0.5.0.
_NAMED_AGAIN = re.compile(rf"\s*// {NAME}$")
# The shape of nearly every line of a module; types of tuples end where an operation begins.
_INSTRUCTION = re.compile(
    rf"\s*+(ROOT )?%?({NAME}) = ({TENSOR}|\(.*?\)(?= [a-z][\w\-]*+\()) ([a-z][\w\-]*+)\("
)
_BEGINNING = re.compile(rf"\s*+(?:ROOT )?%?{NAME} = ")
_LEAVES = frozenset({"constant", "parameter"})
_PREDECESSORS = "control-predecessors"


def parse(text: str) -> Module:
    """Return the graph of an HLO module.

    Args:
        text: As `compiled.as_text()` or `HloModule.to_string()` print it, of any platform.

    Returns:
        The module; unknown attributes are counted in `not_understood`.

    Raises:
        IrSyntaxError: If the text is not an HLO module; the message names line and token.
    """
    number = 1
    try:
        head, first = split_header(text)
        reader = _ModuleReader(head)
        for number, line in number_lines(text, first):
            reader.read_line(line, number)
        return reader.finish()
    except HloTextError as error:
        message = f"got {error.got!r}, expected {error.expected}"
        raise IrSyntaxError(f"hlo line {error.line or number}: {message}") from None


class _ModuleReader:
    """Reads the lines of a module."""

    def __init__(self, head: str) -> None:
        name, attributes = match_all(_HEADER, head, "'HloModule name'").groups()
        self.types = HloTypes()
        self.calls: list[tuple[Instruction, tuple[tuple[str, str], ...]]] = []
        self._origins = Origins()
        self.attributes = AttributeReader(self.types, self._origins)
        found, _ = self.attributes.read(attributes)
        self._module = Module("hlo", name, Computation(""), found.items.copy())
        self.not_understood = self._module.not_understood
        self.count_unknown(found.unknown, "the module")
        self._entry: Computation | None = None
        self._body: _ComputationReader | None = None
        self._table = ""

    def read_line(self, line: str, number: int) -> None:
        """Read the next line."""
        if self._body is None:
            self._read_outside(line.strip())
        elif line.lstrip().startswith("}"):
            self._body.finish(_NAMED_AGAIN.sub("", line.strip()[1:]))
            self._body = None
        else:
            self._body.read_line(line, number)

    def count_unknown(self, unknown: tuple[str, ...], of: str) -> None:
        """Count unknown attributes."""
        for name in unknown:
            self.not_understood[f"attribute {name} of {of}"] += 1

    def finish(self) -> Module:
        """Return the module, its callers linked to their callees."""
        if self._body is not None:
            raise HloTextError("end of text", f"'}}' of computation {self._body.computation.name}")
        if self._entry is None:
            raise HloTextError("end of text", "a computation marked ENTRY")
        # Callees are linked at the end, because texts written by hand have callers first.
        self._module.entry = self._entry
        by_name = self._module.computations
        for caller, bodies in self.calls:
            try:
                caller.bodies = tuple([(role, by_name[name]) for role, name in bodies])
            except KeyError as error:
                expected = "the name of a computation"
                raise HloTextError(error.args[0], expected, caller.line) from None
        return self._module

    def _read_outside(self, line: str) -> None:
        """Read a line between computations."""
        if not line or line.startswith("//"):
            return
        if line in TABLES:
            self._table = line
        elif self._table and line[0].isdigit():
            self._origins.add_row(self._table, line)
        else:
            self._begin_computation(line)

    def _begin_computation(self, line: str) -> None:
        """Begin a computation: `ENTRY %main (x: f32[]) -> f32[] {`."""
        match = _COMPUTATION.match(line)
        if match is None or not line.endswith("{"):
            raise HloTextError(line, "a computation, 'name (parameters) -> type {'")
        entry, name = match.groups()
        if name in self._module.computations:
            raise HloTextError(name, "each computation once")
        # The types repeat those of the parameters and the root; `short_parsable()` omits them.
        if signature := line[match.end() : -1].strip():
            self._check_signature(signature)
        found = self._module.computations[name] = Computation(name)
        if entry:
            if self._entry is not None:
                raise HloTextError("ENTRY", "one entry")
            self._entry = found
        self._body = _ComputationReader(found, self)

    def _check_signature(self, text: str) -> None:
        """Check a signature, `(x: f32[], y: s32[2]) -> f32[]`."""
        types = self.types
        text = strip_comments(text)
        if not text.startswith("("):
            raise HloTextError(text, "'(parameters) -> type {'")
        end = find_closing(text, 0)
        for part in split_parts(text[1 : end - 1]):
            match = _PARAMETER.match(part)
            if match is None:
                raise HloTextError(part, "'name: type'")
            # Reading a type raises if it is malformed; the value is not needed.
            types[part[match.end() :]]
        arrow, _, result = text[end:].lstrip().partition(" ")
        if arrow != "->":
            raise HloTextError(arrow, "'->'")
        types[result]


class _ComputationReader:
    """Reads the lines of a computation."""

    def __init__(self, computation: Computation, module: _ModuleReader) -> None:
        self.computation = computation
        self._module = module
        self._by_name: dict[str, Instruction] = {}
        self._root: Instruction | None = None
        self._parameters: set[int] = set()
        self._with_predecessors: list[Instruction] = []

    def read_line(self, line: str, number: int) -> None:
        """Read an instruction or a comment.

        Raises:
            HloTextError: If the line is anything else.
        """
        match = _INSTRUCTION.match(line)
        if match is None:
            _check_comment(line)
            return
        is_root, name, type_text, op = match.groups()
        start = match.end()
        end = line.find(")", start)
        operands = line[start:end]
        # Brackets and quotes within operands are rare, so matching them is the second attempt.
        if end < 0 or "(" in operands or '"' in operands:
            end = find_closing(line, start - 1) - 1
            operands = line[start:end]
        type_ = self._module.types[type_text]
        found, origin = self._module.attributes.read(line[end + 1 :])
        inputs: tuple[Instruction, ...] = ()
        paths: tuple[Path, ...] = ()
        # The parentheses of a leaf hold a value, not operands.
        if op in _LEAVES:
            attributes = self._read_leaf(op, operands, type_) | found.items
        else:
            attributes = found.items.copy()  # passes rewrite it, and the original is cached
            if operands:
                inputs, paths = self._read_operands(operands)
        instruction = Instruction(name, op, type_, inputs, paths, attributes, (), origin, number)
        if self._by_name.setdefault(name, instruction) is not instruction:
            raise HloTextError(name, "each name once in a computation")
        self.computation.instructions.append(instruction)
        # XLA may print instructions after the root.
        if is_root:
            if self._root is not None:
                raise HloTextError("ROOT", "one root")
            self._root = instruction
        if found.bodies:
            self._module.calls.append((instruction, found.bodies))
        self._module.count_unknown(found.unknown, op)
        if op == "get-tuple-element" or _PREDECESSORS in attributes:
            self._check_references(instruction)

    def finish(self, text: str) -> None:
        """Read the text after the closing brace.

        Raises:
            HloTextError: If the text is malformed, or the computation is incomplete.
        """
        found, _ = self._module.attributes.read(text)
        self.computation.attributes = found.items.copy()
        self._module.count_unknown(found.unknown, "a computation")
        if not self.computation.instructions:
            raise HloTextError("}", "an instruction")
        # A caller binds its operands by these numbers.
        if strange := self._parameters - {*range(len(self._parameters))}:
            raise HloTextError(f"parameter({min(map(int, strange))})", "parameters numbered from 0")
        # As in XLA's own parser, the last instruction is the root if none is marked.
        self.computation.results = [(self._root or self.computation.instructions[-1], ())]
        for instruction in self._with_predecessors:
            names = instruction.attributes[_PREDECESSORS]
            missing = set(names if isinstance(names, tuple) else ()) - self._by_name.keys()
            if missing:
                expected = "the name of an instruction of the computation"
                raise HloTextError(str(missing.pop()), expected, instruction.line)

    def _read_leaf(self, op: str, text: str, type_: Type) -> dict[str, Attribute]:
        """Return the attribute in the parentheses of `constant(1)` or `parameter(0)`."""
        if op == "parameter":
            index = parse_integer(text)
            if index in self._parameters:
                raise HloTextError(text, "each parameter once")
            self._parameters.add(index)
            return {"index": index}
        value = read_literal(text, type_)
        if "..." in text:
            self._module.not_understood["elided constant"] += _count_elided(value)
        return {"value": value}

    def _read_operands(self, text: str) -> tuple[tuple[Instruction, ...], tuple[Path, ...]]:
        """Return the operands in a list, with paths into their results."""
        by_name = self._by_name
        try:
            # A plain split, because most lines of a module list nothing but names.
            if text[0] == "%":
                found = tuple([by_name[name] for name in text[1:].split(", %")])
            else:
                found = tuple([by_name[name] for name in text.split(", ")])
            return found, _make_whole_paths(len(found))
        except KeyError:
            # Operands with types, comments or paths, or an unknown name, which is an error there.
            each = [self._read_operand(part) for part in split_parts(strip_comments(text))]
            return tuple([node for node, _ in each]), tuple([path for _, path in each])

    def _read_operand(self, text: str) -> Value:
        """Return the value of `f32[4]{0} %x`, `%x`, `x` or `x#1#0` (a part of a tuple)."""
        type_text, _, rest = text.rpartition(" ")
        if type_text:
            self._module.types[type_text]
        name, *path = rest.removeprefix("%").split("#")
        found = self._by_name.get(name)
        if found is None:
            raise HloTextError(text, "the name of an instruction above")
        return found, tuple(map(parse_integer, path))

    def _check_references(self, instruction: Instruction) -> None:
        """Check an index into a tuple now, and control predecessors once all names are known."""
        if _PREDECESSORS in instruction.attributes:
            self._with_predecessors.append(instruction)
        if instruction.op != "get-tuple-element":
            return
        # Some print options leave the index out.
        index = instruction.attributes.get("index", 0)
        types = [operand.type for operand in instruction.operands]
        if len(types) != 1 or isinstance(types[0], Tensor):
            raise HloTextError("get-tuple-element", "one operand, a tuple")
        if not isinstance(index, int) or not 0 <= index < len(types[0]):
            raise HloTextError(f"index={index}", f"an index below {len(types[0])}")


def _count_elided(value: object) -> int:
    if isinstance(value, Opaque):
        return 1
    return sum(map(_count_elided, value)) if isinstance(value, tuple) else 0


@cache
def _make_whole_paths(count: int) -> tuple[Path, ...]:
    """Return empty paths for a number of operands; equal ones are one object."""
    return ((),) * count


def _check_comment(line: str) -> None:
    """Check that a line is a comment or empty; describe its defect otherwise."""
    text = line.strip()
    if not text or text.startswith("//"):
        return
    match = _BEGINNING.match(line)
    if match is None:
        raise HloTextError(text, "'name = type operation(...)'")
    raise HloTextError(line[match.end() :], "a type and an operation")
