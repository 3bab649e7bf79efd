"""From the operations of a kernel to a computation of the graph.

Locations, names and the producer's version are left out. A module's functions are instructions
with the attribute `symbol`; they are its results, in the order of their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from conformance.ir.graph import Computation, Instruction, Module
from conformance.ir.kernels.container import Container, Since, at
from conformance.ir.kernels.cursor import Cursor, NotReadError
from conformance.ir.kernels.effects import Effects
from conformance.ir.kernels.properties import properties
from conformance.ir.kernels.spelling import SIGNATURE, canonical_op, meant, name_entry
from conformance.ir.kernels.values import Values, digest
from conformance.ir.normal.regions import close_regions

if TYPE_CHECKING:
    from collections import Counter

    from conformance.ir.graph import Attribute, Type, Value

DEEPEST: Final = 200
"""How deep regions may nest."""
_ATTRIBUTES, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _ORDERS, _PROPERTIES = (
    1 << bit for bit in range(7)
)
_ENDS: Final = ("return", "yield", "condition", "terminator", "end")
_REGION_SECTION: Final = 4
_Stored: TypeAlias = tuple[str, int | None, int | None]
"""An operation, and the numbers of its attributes and its properties."""


class Kernel(NamedTuple):
    """What some bytecode says.

    Attributes:
        body: The module, its functions as instructions.
        not_understood: What was kept as the digest of its bytes.
    """

    body: Computation
    not_understood: Counter[str]


def read_kernel(data: bytes) -> Kernel:
    """Read a kernel.

    Args:
        data: MLIR bytecode.

    Returns:
        What it says.

    Raises:
        NotReadError: If it is not as documented, or has branches between blocks.
    """
    container = Container.of(data)
    values = Values(container)
    module = _Reader(container, values).read()
    close_regions(Module("kernel", "", module))
    name_entry(module)
    return Kernel(module, values.not_understood)


class _Scope:
    """The values that operations see, by number; regions add theirs and take them away."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: list[Value | None] = []

    def operand(self, number: int) -> Value:
        found = at(self.values, number)
        if found is None:
            raise NotReadError("a value that is defined above")
        return found


@dataclass(slots=True)
class _Block:
    """A block that is being read, the only one of its region.

    Attributes:
        computation: What has been read of it.
        cursor: Where its operations are.
        scope: The values it sees.
        begin: Number of its first value.
        next: Number of the next value.
        left: How many operations are left.
    """

    computation: Computation
    cursor: Cursor
    scope: _Scope
    begin: int
    next: int
    left: int


@dataclass(slots=True)
class _Regions:
    """Regions of an operation that are still to be read."""

    instruction: Instruction
    cursor: Cursor
    scope: _Scope
    left: int


class _Reader:
    def __init__(self, container: Container, values: Values) -> None:
        self._container = container
        self._values = values
        self._effects = Effects()
        self._dictionaries: dict[_Stored, dict[str, Attribute]] = {}

    def read(self) -> Computation:
        """Return the body of the module."""
        cursor = Cursor(self._container.code)
        outermost = self._block(cursor, _Scope(), 0, "kernel")
        open_: list[_Block | _Regions] = [outermost]
        while open_:
            current = open_[-1]
            if len(open_) > 2 * DEEPEST:
                raise NotReadError(f"regions nested at most {DEEPEST} deep")
            if not current.left:
                open_.pop()
                if isinstance(current, _Block):
                    self._end(current)
            elif isinstance(current, _Regions):
                block = self._region(current)
                if block is not None:
                    open_.append(block)
            else:
                regions = self._operation(current)
                if regions is not None:
                    open_.append(regions)
        if cursor.left or len(outermost.computation.instructions) != 1:
            raise NotReadError("one module")
        module = outermost.computation.instructions[0]
        if module.op != "builtin.module" or len(module.bodies) != 1:
            raise NotReadError("a module")
        body = module.bodies[0][1]
        body.name = "kernel"
        body.attributes = module.attributes
        return body

    def _region(self, regions: _Regions) -> _Block | None:
        """Begin the next region of an operation; None if it is empty."""
        regions.left -= 1
        cursor, scope = regions.cursor, regions.scope
        instruction = regions.instruction
        role = f"region {len(instruction.bodies)}"
        blocks = cursor.varint()
        if blocks > 1:
            raise NotReadError("regions of one block")
        count = cursor.varint() if blocks else 0
        if count > cursor.left:
            raise NotReadError("values that fit in the bytes that are left")
        if blocks:
            block = self._block(cursor, scope, count, f"{instruction.op} {role}")
            if SIGNATURE in instruction.attributes:
                said = instruction.attributes
                instruction.attributes = {k: v for k, v in said.items() if k != SIGNATURE}
            computation = block.computation
        else:
            block, computation = None, Computation(f"{instruction.op} {role}")
        instruction.bodies += ((role, computation),)
        return block

    def _block(self, cursor: Cursor, scope: _Scope, count: int, name: str) -> _Block:
        operations, has_arguments = cursor.flagged()
        begin = len(scope.values)
        scope.values += [None] * count
        block = _Block(Computation(name), cursor, scope, begin, begin, operations)
        if has_arguments:
            self._arguments(block)
        return block

    def _arguments(self, block: _Block) -> None:
        version, cursor = self._container.version, block.cursor
        count = cursor.varint()
        for number in range(count):
            located, type_ = True, cursor.varint()
            if version >= Since.UNKNOWN_LOCATIONS_LEFT_OUT:
                type_, located = type_ >> 1, bool(type_ & 1)
            if located:
                cursor.varint()
            made = Instruction(f"p{number}", "parameter", self._values.type(type_))
            made.attributes = {"index": number}
            self._add(block, made, 1)
        if version >= Since.ORDERS_OF_USES and cursor.byte():
            _skip_orders(cursor, count)

    def _add(self, block: _Block, made: Instruction, results: int) -> None:
        """Add an instruction to a block, and its results to the values."""
        block.computation.instructions.append(made)
        values, end = block.scope.values, block.next + results
        if end > len(values):
            raise NotReadError(f"at most {len(values)} values")
        for number in range(results):
            values[block.next + number] = (made, () if results == 1 else (number,))
        block.next = end

    def _operation(self, block: _Block) -> _Regions | None:
        """Read an operation; return its regions, if it has any."""
        block.left -= 1
        cursor = block.cursor
        op, known = at(self._container.operations, cursor.varint())
        mask = cursor.byte()
        cursor.varint()  # its location
        attributes = self._attributes(op, known, mask, cursor)
        numbers = cursor.varints() if mask & _RESULTS else []
        types = [self._values.type(number) for number in numbers]
        numbers = cursor.varints() if mask & _OPERANDS else []
        operands = [block.scope.operand(number) for number in numbers]
        if mask & _SUCCESSORS and cursor.varints():
            raise NotReadError("operations without successors")
        if mask & _ORDERS:
            _skip_orders(cursor, len(types))
        count, isolated = cursor.flagged() if mask & _REGIONS else (0, False)
        made = _instruction(f"{canonical_op(op)}.{block.next}", types, attributes, operands)
        if not block.left and _is_end(made) and not count:
            block.computation.results = operands
            return None
        self._add(block, made, len(types))
        return self._regions(block, made, count, isolated=isolated) if count else None

    def _regions(self, block: _Block, made: Instruction, count: int, *, isolated: bool) -> _Regions:
        """Return the regions of an operation, which may see the values around it."""
        cursor = block.cursor
        if count > cursor.left:
            raise NotReadError("regions that fit in the bytes that are left")
        if not isolated:
            return _Regions(made, cursor, block.scope, count)
        if self._container.version >= Since.SECTIONS_OF_REGIONS:
            number, data = cursor.section()
            if number != _REGION_SECTION:
                raise NotReadError("a section with regions")
            cursor = Cursor(data)
        return _Regions(made, cursor, _Scope(), count)

    def _attributes(self, op: str, known: bool, mask: int, cursor: Cursor) -> dict[str, Attribute]:
        """Read which attributes an operation has; the same ones are one dictionary."""
        key = (
            op,
            cursor.varint() if mask & _ATTRIBUTES else None,
            cursor.varint() if mask & _PROPERTIES else None,
        )
        found = self._dictionaries.get(key)
        if found is None:
            found = self._dictionaries[key] = meant(canonical_op(op), self._stored(key, known))
        return found

    def _stored(self, key: _Stored, known: bool) -> list[tuple[str, Attribute]]:
        op, dictionary, inherent = key
        found = [] if dictionary is None else self._values.named(dictionary)
        if inherent is None:
            return found
        if not known:
            return found + self._values.named(inherent)
        data = at(self._container.properties, inherent)
        read = properties(op, data, self._values, self._container.version)
        if read is None:
            self._values.not_understood[f"kernel properties of {op}"] += 1
            read = [("properties", digest(data))]
        return found + read

    def _end(self, block: _Block) -> None:
        """Take a block's values away, and put what it does into its order."""
        del block.scope.values[block.begin :]
        computation = block.computation
        self._effects.chain(computation)
        named = [i for i in computation.instructions if "symbol" in i.attributes]
        named.sort(key=lambda i: str(i.attributes["symbol"]))
        computation.results += [(instruction, ()) for instruction in named]


def _instruction(
    name: str, types: list[Type], attributes: dict[str, Attribute], operands: list[Value]
) -> Instruction:
    type_: Type = types[0] if len(types) == 1 else tuple(types)
    made = Instruction(name, name.rpartition(".")[0], type_, attributes=attributes)
    made.inputs = operands
    return made


def _is_end(instruction: Instruction) -> bool:
    """Say whether an operation does nothing but end a block and give results."""
    named = instruction.op.rpartition(".")[2] in _ENDS
    return named and instruction.type == () and not instruction.attributes


def _skip_orders(cursor: Cursor, results: int) -> None:
    """Step over the orders in which values are used."""
    several = results > 1
    for _ in range(cursor.varint() if several else 1):
        if several:
            cursor.varint()
        for _ in range(cursor.flagged()[0]):
            cursor.varint()
