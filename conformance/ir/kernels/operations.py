"""From the operations of a kernel to a computation of the graph.

Locations, names and the producer's version are left out. A module's functions are instructions
with the attribute `symbol`; they are its results, in the order of their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from conformance.ir.graph import Computation, Instruction, Module
from conformance.ir.kernels.container import Container, FormatVersion, at
from conformance.ir.kernels.cursor import Cursor, NotReadError
from conformance.ir.kernels.effects import Effects
from conformance.ir.kernels.properties import properties
from conformance.ir.kernels.spelling import SIGNATURE, canonical_op, meant, name_entry
from conformance.ir.kernels.values import KernelValues, digest
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
Scope: TypeAlias = "list[Value | None]"


class Kernel(NamedTuple):
    """A kernel, read from bytecode.

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
        The kernel.

    Raises:
        NotReadError: If it is not as documented, or has branches between blocks.
    """
    container = Container.of(data)
    values = KernelValues(container)
    module = KernelReader(container, values).read()
    close_regions(Module("kernel", "", module))
    name_entry(module)
    return Kernel(module, values.not_understood)


@dataclass(slots=True)
class _Block:
    """A block that is being read, the only one of its region.

    Attributes:
        computation: What has been read of it.
        cursor: Where its operations are.
        scope: The values it sees, by number; those of its own are taken away at its end.
        next: Number of the next value.
    """

    computation: Computation
    cursor: Cursor
    scope: Scope
    next: int

    def add(self, made: Instruction, results: int) -> None:
        """Add an instruction, and its results to the values."""
        self.computation.instructions.append(made)
        end = self.next + results
        if end > len(self.scope):
            raise NotReadError(f"at most {len(self.scope)} values")
        for number in range(results):
            self.scope[self.next + number] = (made, () if results == 1 else (number,))
        self.next = end

    def operand(self, number: int) -> Value:
        """Return a value."""
        found = at(self.scope, number)
        if found is None:
            raise NotReadError("a value that is defined above")
        return found


class KernelReader:
    """Reads the operations of a kernel.

    Args:
        container: What the bytecode holds.
        values: Its attributes and types.
    """

    def __init__(self, container: Container, values: KernelValues) -> None:
        self._container = container
        self._values = values
        self._effects = Effects()
        self._dictionaries: dict[_Stored, dict[str, Attribute]] = {}

    def read(self) -> Computation:
        """Return the body of the module."""
        cursor = Cursor(self._container.code)
        outermost = self._read_block("kernel", cursor, [], 0, depth=0)
        if cursor.left or len(outermost.instructions) != 1:
            raise NotReadError("one module")
        module = outermost.instructions[0]
        if module.op != "builtin.module" or len(module.bodies) != 1:
            raise NotReadError("a module")
        body = module.bodies[0][1]
        body.name = "kernel"
        body.attributes = module.attributes
        return body

    def _read_block(
        self, name: str, cursor: Cursor, scope: Scope, values: int, *, depth: int
    ) -> Computation:
        """Read a block, and put what it does into its order."""
        # Two calls a level: well below what Python allows.
        if depth > DEEPEST:
            raise NotReadError(f"regions nested at most {DEEPEST} deep")
        operations, has_arguments = cursor.flagged()
        begin = len(scope)
        scope += [None] * values
        block = _Block(Computation(name), cursor, scope, begin)
        if has_arguments:
            self._read_arguments(block)
        for left in reversed(range(operations)):
            made, count, isolated = self._read_operation(block, is_last=not left)
            if count > cursor.left:
                raise NotReadError("regions that fit in the bytes that are left")
            # An isolated operation's regions see none of the values around it.
            inner = self._enter_isolated(cursor) if count and isolated else (cursor, scope)
            for _ in range(count):
                self._read_region(made, *inner, depth=depth)
        del scope[begin:]
        self._effects.chain(block.computation)
        named = [i for i in block.computation.instructions if "symbol" in i.attributes]
        named.sort(key=lambda i: str(i.attributes["symbol"]))
        block.computation.results += [(instruction, ()) for instruction in named]
        return block.computation

    def _read_arguments(self, block: _Block) -> None:
        version, cursor = self._container.version, block.cursor
        count = cursor.varint()
        for number in range(count):
            located, type_ = True, cursor.varint()
            if version >= FormatVersion.UNKNOWN_LOCATIONS_LEFT_OUT:
                type_, located = type_ >> 1, bool(type_ & 1)
            if located:
                cursor.varint()
            made = Instruction(f"p{number}", "parameter", self._values.type(type_))
            made.attributes = {"index": number}
            block.add(made, 1)
        if version >= FormatVersion.ORDERS_OF_USES and cursor.byte():
            _skip_orders(cursor, count)

    def _read_operation(self, block: _Block, *, is_last: bool) -> tuple[Instruction, int, bool]:
        """Read an operation; return it, how many regions follow, and whether they are isolated."""
        cursor = block.cursor
        op, known = at(self._container.operations, cursor.varint())
        mask = cursor.byte()
        cursor.varint()  # its location
        attributes = self._attributes(op, known, mask, cursor)
        numbers = cursor.varints() if mask & _RESULTS else []
        types = [self._values.type(number) for number in numbers]
        numbers = cursor.varints() if mask & _OPERANDS else []
        operands = [block.operand(number) for number in numbers]
        if mask & _SUCCESSORS and cursor.varints():
            raise NotReadError("operations without successors")
        if mask & _ORDERS:
            _skip_orders(cursor, len(types))
        count, isolated = cursor.flagged() if mask & _REGIONS else (0, False)
        made = _make_instruction(f"{canonical_op(op)}.{block.next}", types, attributes, operands)
        if is_last and _is_end(made) and not count:
            block.computation.results = operands
        else:
            block.add(made, len(types))
        return made, count, isolated

    def _enter_isolated(self, cursor: Cursor) -> tuple[Cursor, Scope]:
        if self._container.version < FormatVersion.SECTIONS_OF_REGIONS:
            return cursor, []
        number, data = cursor.section()
        if number != _REGION_SECTION:
            raise NotReadError("a section with regions")
        return Cursor(data), []

    def _read_region(self, made: Instruction, cursor: Cursor, scope: Scope, *, depth: int) -> None:
        """Read the next region of an operation."""
        role = f"region {len(made.bodies)}"
        name = f"{made.op} {role}"
        body = Computation(name)
        blocks = cursor.varint()
        if blocks > 1:
            raise NotReadError("regions of one block")
        if blocks:
            values = cursor.varint()
            if values > cursor.left:
                raise NotReadError("values that fit in the bytes that are left")
            made.attributes = {k: v for k, v in made.attributes.items() if k != SIGNATURE}
            body = self._read_block(name, cursor, scope, values, depth=depth + 1)
        made.bodies += ((role, body),)

    def _attributes(self, op: str, known: bool, mask: int, cursor: Cursor) -> dict[str, Attribute]:
        """Read which attributes an operation has; the same ones are one dictionary."""
        key = (
            op,
            cursor.varint() if mask & _ATTRIBUTES else None,
            cursor.varint() if mask & _PROPERTIES else None,
        )
        found = self._dictionaries.get(key)
        if found is None:
            found = self._dictionaries[key] = meant(canonical_op(op), self._read_stored(key, known))
        return found

    def _read_stored(self, key: _Stored, known: bool) -> list[tuple[str, Attribute]]:
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


def _make_instruction(
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
