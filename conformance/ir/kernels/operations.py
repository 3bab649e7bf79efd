"""The reader of a kernel's operations: from bytecode to a computation of the graph.

Locations, names and the producer's version are left out. A module's functions are instructions
with the attribute `symbol`; they are its results, in the order of their names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from conformance.ir.graph import Computation, Instruction, Module
from conformance.ir.kernels.bytecode import (
    BytecodeError,
    Container,
    Cursor,
    lookup,
    read_container,
)
from conformance.ir.kernels.dialects import (
    SIGNATURE,
    find_functions,
    get_canonical_op,
    name_entry,
    normalise_attributes,
    order_effects,
    read_properties,
)
from conformance.ir.kernels.values import KernelValues, hash_bytes
from conformance.ir.normal.loop_carries import close_regions

if TYPE_CHECKING:
    from collections import Counter

    from conformance.ir.graph import Attribute, Type, Value

DEEPEST: Final = 200
"""Limit of nested regions."""
_ATTRIBUTES, _RESULTS, _OPERANDS, _SUCCESSORS, _REGIONS, _USE_LISTS, _PROPERTIES = (
    1 << bit for bit in range(7)
)
_TERMINATORS: Final = ("return", "yield", "condition", "terminator", "end")
_REGION_SECTION: Final = 4
# An operation, and the numbers of its attributes and its properties.
_Stored: TypeAlias = tuple[str, int | None, int | None]
Scope: TypeAlias = "list[Value | None]"


def read_kernel(data: bytes, not_understood: Counter[str]) -> Computation:
    """Read a kernel.

    Args:
        data: MLIR bytecode.
        not_understood: Counts of the parts kept as a digest, by description; added to.

    Returns:
        The module, its functions as instructions.

    Raises:
        BytecodeError: If the bytes are not understood, or have branches between blocks.
    """
    reader = KernelReader(read_container(data))
    module = reader.read()
    # Passes expect closed regions, and the pass over the module ran before kernels were read.
    close_regions(Module("kernel", "", module))
    name_entry(module)
    not_understood.update(reader.values.not_understood)
    return module


@dataclass(slots=True)
class _Block:
    """A block that is being read, the only one of its region.

    Attributes:
        computation: The operations read so far.
        cursor: The position of the next operation.
        scope: The visible values by number; those of the block are removed at its end.
        next: Number of the next value.
    """

    computation: Computation
    cursor: Cursor
    scope: Scope
    next: int

    def add(self, instruction: Instruction, results: int) -> None:
        """Add an instruction, and its results to the values."""
        self.computation.instructions.append(instruction)
        # The region states its number of values; more would overwrite those of an outer region.
        end = self.next + results
        if end > len(self.scope):
            raise BytecodeError(f"at most {len(self.scope)} values")
        for number in range(results):
            self.scope[self.next + number] = (instruction, () if results == 1 else (number,))
        self.next = end

    def get_value(self, number: int) -> Value:
        """Return a value by its number."""
        found = lookup(self.scope, number)
        if found is None:
            raise BytecodeError("a value that is defined above")
        return found


class KernelReader:
    """Reads the operations of a kernel.

    Args:
        container: The content of the bytecode.

    Attributes:
        values: The attributes and types of the kernel.
    """

    def __init__(self, container: Container) -> None:
        self.values = KernelValues(container)
        self._container = container
        self._effectful: set[int] = set()
        self._attributes: dict[_Stored, dict[str, Attribute]] = {}

    def read(self) -> Computation:
        """Return the body of the module."""
        cursor = Cursor(self._container.code)
        outermost = self._read_block("kernel", cursor, [], 0, depth=0)
        if cursor.remaining or len(outermost.instructions) != 1:
            raise BytecodeError("one module")
        module = outermost.instructions[0]
        if module.op != "builtin.module" or len(module.bodies) != 1:
            raise BytecodeError("a module")
        body = module.bodies[0][1]
        body.name = "kernel"
        body.attributes = module.attributes
        return body

    def _read_block(
        self, name: str, cursor: Cursor, scope: Scope, values: int, *, depth: int
    ) -> Computation:
        # A level takes two Python calls: the limit is far below that of the interpreter.
        if depth > DEEPEST:
            raise BytecodeError(f"regions nested at most {DEEPEST} deep")
        operations, has_arguments = cursor.read_flagged()
        begin = len(scope)
        scope += [None] * values
        block = _Block(Computation(name), cursor, scope, begin)
        if has_arguments:
            self._read_arguments(block)
        for following in reversed(range(operations)):
            instruction, count, isolated = self._read_operation(block, is_last=not following)
            # A region takes at least one byte; the count itself could be anything.
            if count > cursor.remaining:
                raise BytecodeError("regions that fit in the bytes that are left")
            inner = self._enter_isolated(cursor) if count and isolated else (cursor, scope)
            for _ in range(count):
                self._read_region(instruction, *inner, depth=depth)
        del scope[begin:]  # values of a region end with it
        # After its regions: whether an operation has an effect depends on what is in them.
        order_effects(block.computation, self._effectful)
        functions = find_functions(block.computation)
        block.computation.results += [(function, ()) for function in functions]
        return block.computation

    def _read_arguments(self, block: _Block) -> None:
        is_current, cursor = self._container.is_current, block.cursor
        count = cursor.read_varint()
        for number in range(count):
            type_, located = cursor.read_flagged() if is_current else (cursor.read_varint(), True)
            if located:
                cursor.read_varint()
            parameter = Instruction(f"p{number}", "parameter", self.values.type(type_))
            parameter.attributes = {"index": number}
            block.add(parameter, 1)
        if is_current and cursor.read_byte():
            _skip_use_lists(cursor, count)

    def _read_operation(self, block: _Block, *, is_last: bool) -> tuple[Instruction, int, bool]:
        """Read an operation; return it, how many regions follow, and whether they are isolated."""
        cursor = block.cursor
        stored, is_known = lookup(self._container.operations, cursor.read_varint())
        mask = cursor.read_byte()
        # Locations have the paths of the machine that built the kernel.
        cursor.read_varint()
        attributes = self._read_attributes(stored, is_known, mask, cursor)
        numbers = cursor.read_varints() if mask & _RESULTS else []
        types = tuple([self.values.type(number) for number in numbers])
        numbers = cursor.read_varints() if mask & _OPERANDS else []
        operands = [block.get_value(number) for number in numbers]
        # Mosaic and Triton use structured control flow; the graph has no branches between blocks.
        if mask & _SUCCESSORS and cursor.read_varints():
            raise BytecodeError("operations without successors")
        if mask & _USE_LISTS:
            _skip_use_lists(cursor, len(types))
        count, isolated = cursor.read_flagged() if mask & _REGIONS else (0, False)
        op = get_canonical_op(stored)
        type_: Type = types[0] if len(types) == 1 else types
        instruction = Instruction(f"{op}.{block.next}", op, type_, attributes=attributes)
        instruction.inputs = operands
        is_terminator = op.rpartition(".")[2] in _TERMINATORS and type_ == () and not attributes
        # A terminator is not an instruction: as in StableHLO, its operands are the results.
        if is_last and is_terminator and not count:
            block.computation.results = operands
        else:
            block.add(instruction, len(types))
        return instruction, count, isolated

    def _enter_isolated(self, cursor: Cursor) -> tuple[Cursor, Scope]:
        """Return cursor and scope for the regions of an isolated operation: no outer values."""
        if not self._container.is_current:
            return cursor, []
        number, data = cursor.read_section()
        if number != _REGION_SECTION:
            raise BytecodeError("a section with regions")
        return Cursor(data), []

    def _read_region(
        self, instruction: Instruction, cursor: Cursor, scope: Scope, *, depth: int
    ) -> None:
        """Read the next region of an operation."""
        role = f"region {len(instruction.bodies)}"
        name = f"{instruction.op} {role}"
        body = Computation(name)
        blocks = cursor.read_varint()
        if blocks > 1:
            raise BytecodeError("regions of one block")
        if blocks:
            values = cursor.read_varint()
            if values > cursor.remaining:
                raise BytecodeError("values that fit in the bytes that are left")
            # A copy without the type: the dictionary is shared by operations of equal attributes.
            attributes = instruction.attributes
            instruction.attributes = {k: v for k, v in attributes.items() if k != SIGNATURE}
            body = self._read_block(name, cursor, scope, values, depth=depth + 1)
        instruction.bodies += ((role, body),)

    def _read_attributes(
        self, op: str, is_known: bool, mask: int, cursor: Cursor
    ) -> dict[str, Attribute]:
        """Read the attributes of an operation; equal ones are one dictionary."""
        dictionary = cursor.read_varint() if mask & _ATTRIBUTES else None
        inherent = cursor.read_varint() if mask & _PROPERTIES else None
        key = (op, dictionary, inherent)
        if key not in self._attributes:
            stored = [] if dictionary is None else self.values.get_dictionary(dictionary)
            if inherent is not None:
                stored += self._read_inherent(op, is_known, inherent)
            self._attributes[key] = normalise_attributes(get_canonical_op(op), stored)
        return self._attributes[key]

    def _read_inherent(self, op: str, is_known: bool, number: int) -> list[tuple[str, Attribute]]:
        # Properties of an operation that the writer's dialect did not know are a dictionary.
        if not is_known:
            return self.values.get_dictionary(number)
        data = lookup(self._container.properties, number)
        found = read_properties(op, data, self.values)
        if found is None:
            self.values.not_understood[f"kernel properties of {op}"] += 1
            return [("properties", hash_bytes(data))]
        return found


def _skip_use_lists(cursor: Cursor, results: int) -> None:
    """Skip the orders in which values are used: an order for each value that has one."""
    for _ in range(cursor.read_varint() if results > 1 else 1):
        if results > 1:
            cursor.read_varint()
        for _ in range(cursor.read_flagged()[0]):
            cursor.read_varint()
