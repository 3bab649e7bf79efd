"""One computation's instructions, line by line."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from conformance.ir.graph import Instruction, Opaque, Tensor
from conformance.ir.hlo.lexing import NAME, Unexpected, closing, integer, parts, without_comments
from conformance.ir.hlo.literals import literal
from conformance.ir.hlo.shapes import TENSOR

if TYPE_CHECKING:
    from collections import Counter

    from conformance.ir.graph import Attribute, Computation, Type
    from conformance.ir.hlo.attributes import Reader
    from conformance.ir.hlo.shapes import Types

_INSTRUCTION = re.compile(
    rf"\s*+(ROOT )?%?({NAME}) = ({TENSOR}|\(.*?\)(?= [a-z][\w\-]*+\()) ([a-z][\w\-]*+)\("
)
_BEGINNING = re.compile(rf"\s*+(?:ROOT )?%?{NAME} = ")
_LEAVES = frozenset({"constant", "parameter"})
_ORDER = "control-predecessors"

Paths: TypeAlias = tuple[tuple[int, ...], ...]


class Shared(NamedTuple):
    """What the computations of a module have in common.

    Attributes:
        types: Types by their text.
        reader: Reads attributes.
        not_understood: Counts what is not known.
        calls: Instructions that call computations, with role and name of each.
    """

    types: Types
    reader: Reader
    not_understood: Counter[str]
    calls: list[tuple[Instruction, tuple[tuple[str, str], ...]]]


class Body:
    """Fills a computation with the instructions of its lines.

    Attributes:
        computation: What is filled.
    """

    def __init__(self, computation: Computation, shared: Shared) -> None:
        self.computation = computation
        self._types, self._reader, self._not_understood, self._calls = shared
        self._by_name: dict[str, Instruction] = {}
        self._root: Instruction | None = None
        self._parameters: set[int] = set()
        self._ordered: list[Instruction] = []

    def line(self, line: str, number: int) -> None:
        """Take a line: an instruction, or a comment.

        Raises:
            Unexpected: If it is something else.
        """
        match = _INSTRUCTION.match(line)
        if match is None:
            _not_an_instruction(line)
            return
        is_root, name, type_text, op = match.groups()
        start = match.end()
        end = line.find(")", start)
        operands = line[start:end]
        if end < 0 or "(" in operands or '"' in operands:
            end = closing(line, start - 1) - 1
            operands = line[start:end]
        type_ = self._types[type_text]
        found, origin = self._reader.read(line[end + 1 :])
        inputs: tuple[Instruction, ...] = ()
        paths: Paths = ()
        if op in _LEAVES:
            attributes = self._leaf(op, operands, type_) | found.items
        else:
            attributes = found.items.copy()
            if operands:
                inputs, paths = self._operands(operands)
        instruction = Instruction(name, op, type_, inputs, paths, attributes, (), origin, number)
        if self._by_name.setdefault(name, instruction) is not instruction:
            raise Unexpected(name, "each name once in a computation")
        self.computation.instructions.append(instruction)
        if is_root:
            self._set_root(instruction)
        if found.bodies:
            self._calls.append((instruction, found.bodies))
        if found.unknown:
            self._not_understood.update([f"attribute {one} of {op}" for one in found.unknown])
        if op == "get-tuple-element" or _ORDER in attributes:
            self._check(instruction)

    def end(self, text: str) -> None:
        """Take what follows the closing brace.

        Raises:
            Unexpected: If it is not attributes, or the computation is not complete.
        """
        found, _ = self._reader.read(text)
        self.computation.attributes = found.items.copy()
        self._not_understood.update([f"attribute {one} of a computation" for one in found.unknown])
        if not self.computation.instructions:
            raise Unexpected("}", "an instruction")
        # Whoever applies the computation finds arguments by these numbers.
        if strange := self._parameters - {*range(len(self._parameters))}:
            raise Unexpected(f"parameter({min(map(int, strange))})", "parameters numbered from 0")
        self.computation.results = [(self._root or self.computation.instructions[-1], ())]
        for instruction in self._ordered:
            names = instruction.attributes[_ORDER]
            missing = set(names if isinstance(names, tuple) else ()) - self._by_name.keys()
            if missing:
                expected = "the name of an instruction of the computation"
                raise Unexpected(str(missing.pop()), expected, instruction.line)

    def _leaf(self, op: str, text: str, type_: Type) -> dict[str, Attribute]:
        """Return what `constant(1)` and `parameter(0)` have in place of operands."""
        if op == "parameter":
            index = integer(text)
            if index in self._parameters:
                raise Unexpected(text, "each parameter once")
            self._parameters.add(index)
            return {"index": index}
        value = literal(text, type_)
        if "..." in text:
            self._not_understood["elided constant"] += _elided(value)
        return {"value": value}

    def _operands(self, text: str) -> tuple[tuple[Instruction, ...], Paths]:
        """Return the instructions that a list of operands names, with paths into their results."""
        by_name = self._by_name
        try:
            if text[0] == "%":
                found = tuple([by_name[name] for name in text[1:].split(", %")])
            else:
                found = tuple([by_name[name] for name in text.split(", ")])
            return found, _whole(len(found))
        except KeyError:
            each = [self._operand(part) for part in parts(without_comments(text))]
            return tuple([one for one, _ in each]), tuple([path for _, path in each])

    def _operand(self, text: str) -> tuple[Instruction, tuple[int, ...]]:
        """Return what `f32[4]{0} %x`, `%x`, `x` or `x#1#0` (a part of a tuple) names."""
        type_text, _, rest = text.rpartition(" ")
        if type_text:
            self._types[type_text]
        name, *path = rest.removeprefix("%").split("#")
        found = self._by_name.get(name)
        if found is None:
            raise Unexpected(text, "the name of an instruction above")
        return found, tuple(map(integer, path))

    def _set_root(self, instruction: Instruction) -> None:
        if self._root is not None:
            raise Unexpected("ROOT", "one root")
        self._root = instruction

    def _check(self, instruction: Instruction) -> None:
        """Check what needs a second look: parts of tuples now, orders when all is read."""
        if _ORDER in instruction.attributes:
            self._ordered.append(instruction)
        if instruction.op != "get-tuple-element":
            return
        # print options may have left the index out
        index = instruction.attributes.get("index", 0)
        types = [operand.type for operand in instruction.operands]
        if len(types) != 1 or isinstance(types[0], Tensor):
            raise Unexpected("get-tuple-element", "one operand, a tuple")
        if not isinstance(index, int) or not 0 <= index < len(types[0]):
            raise Unexpected(f"index={index}", f"one below {len(types[0])}")


def _elided(value: object) -> int:
    if isinstance(value, Opaque):
        return 1
    return sum(map(_elided, value)) if isinstance(value, tuple) else 0


@cache
def _whole(count: int) -> Paths:
    """Return that many times the whole result; one object for each count."""
    return ((),) * count


def _not_an_instruction(line: str) -> None:
    """Say what is wrong with a line, unless it is a comment or empty."""
    text = line.strip()
    if not text or text.startswith("//"):
        return
    match = _BEGINNING.match(line)
    if match is None:
        raise Unexpected(text, "'name = type operation(...)'")
    raise Unexpected(line[match.end() :], "a type and an operation")
