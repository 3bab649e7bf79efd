"""The parser of MLIR's generic form: operations, their regions, the module.

It reads the text once, with a stack of the operations whose regions are open. The text after the
operands of an operation (attributes and types) recurs a lot in a module: the parser caches it, so
that most lines are only split and looked up.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, cast

from conformance.ir.graph import NOWHERE, Computation, Instruction, Module
from conformance.ir.hlo.shardings import Mesh
from conformance.ir.mlir.attributes import Attributes
from conformance.ir.mlir.locations import Locations
from conformance.ir.mlir.operation import OpenOperation, OperationHead, OperationTail
from conformance.ir.mlir.scan import Scanner, TextHeader, check_rest
from conformance.ir.mlir.symbols import CALLS, Symbols, ValueScopes, get_role, refuse
from conformance.ir.mlir.tensors import Types

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Origin

DEEPEST = 500
"""Limit of nested regions."""
# The longest text after the operands of an operation that is cached: longer ones are mostly
# constants, which do not recur.
_LONGEST = 4000
# An operation without regions on a single line, up to the end of its operands and of the line.
_LINE = re.compile(
    r'\s*+(?:(%[\w$.-]+)(?::(\d+))? = )?"([\w$.-]+)"\(([^()\n]*+)\)'
    rf"([^\n]{{0,{_LONGEST}}}+)(?=\n|\Z)"
)
_ENDS = (".return", ".yield")


def parse(text: str) -> Module:
    """Return the graph of a module.

    Args:
        text: The text of `operation.get_asm(print_generic_op_form=True,
            large_elements_limit=None, enable_debug_info=True)`; debug information is optional.

    Raises:
        IrSyntaxError: If the text is malformed; the message names line and token.
    """
    return _Reader(text).read()


class _Reader:
    """Reads a module."""

    def __init__(self, text: str) -> None:
        header = TextHeader.find(text)
        self._scan = Scanner(text)
        self._unknown: list[str] = []
        self._types = Types(header.types, self._unknown)
        self._attributes = Attributes(header.attributes, self._types, self._unknown)
        self._locations = Locations(text, header.locations)
        self._symbols = Symbols()
        self._stack: list[OpenOperation] = []
        self._values = ValueScopes()
        self._tails: dict[tuple[str, str], OperationTail] = {}
        self._origins: dict[str, Origin] = {}
        self._not_understood: Counter[str] = Counter()
        self._names: Counter[str] = Counter()
        self._module: Module | None = None
        # Shardings refer to meshes by name, so all meshes are read before the module.
        for place in header.meshes:
            self._read_mesh(place)
        self._scan.seek(header.start)
        self._position = header.start

    def read(self) -> Module:
        self._read_operation()
        self._position = self._scan.start
        while self._module is None:
            # The shortcut is for instructions: the operations of the module itself are functions.
            if len(self._stack) > 1:
                self._read_known_lines()
            self._scan.seek(self._position)
            if not self._stack:
                self._scan.fail("a module")
            if self._scan.next == "}":
                self._end_region()
            elif self._scan.next[:1] == "^":
                self._read_block()
            else:
                self._read_operation()
            self._position = self._scan.start
        check_rest(self._scan)
        self._module.not_understood = self._not_understood
        return self._module

    def _read_mesh(self, place: int) -> None:
        """Read the definition of a mesh, which may follow its uses."""
        scan = self._scan
        scan.seek(place)
        found: dict[str, Attribute] = {}
        properties = scan.accept("<")
        self._attributes.read_dictionary(scan, found)
        if properties:
            scan.expect(">")
        name = found.get("sym_name")
        try:
            fields = dict(cast("tuple[tuple[str, Attribute], ...]", found.get("mesh", ())))
            axes = dict(cast("tuple[tuple[str, int], ...]", fields["axes"]))
            devices = cast("tuple[int, ...]", fields["device_ids"])
        except (KeyError, TypeError, ValueError):
            scan.fail("a mesh before it")
        self._attributes.meshes[str(name)] = Mesh(axes, devices)

    def _read_known_lines(self) -> None:
        """Read lines whose attributes, types and locations are cached."""
        text, tails, origins = self._scan.text, self._tails, self._origins
        position = self._position
        while (found := _LINE.match(text, position)) is not None:
            key, count, op, operands, tail = found.groups()
            cut = tail.rfind(" loc(")
            where = tail[cut:] if cut >= 0 else ""
            known = tails.get((op, tail[:cut] if where else tail))
            if known is None:
                break
            origin = origins.get(where) if where else NOWHERE
            # A reference such as `loc(#loc12)` recurs, so it is resolved once.
            if origin is None:
                self._scan.seek(found.end() - len(where))
                origin = self._locations.read(self._scan)
                # ` loc(` was within an attribute: the slow path reads the whole operation.
                if self._scan.start < found.end():
                    break
                origins[where] = origin
            line = self._scan.find_line(found.start(3))
            values = self._values.resolve(operands, line) if operands else []
            self._add(OperationHead(key or "", count or "", op, values, line), known, origin)
            position = found.end()
        self._position = position

    def _read_operation(self) -> None:
        """Read an operation, up to its end or its first region."""
        scan = self._scan
        if scan.next[:1] not in {"%", '"'}:
            scan.fail("an operation in generic form" + (" or '}'" if self._stack else ""))
        head, after = self._read_head()
        attributes: dict[str, Attribute] = {}
        # Set for each operation: a constant of integers is one text, a list of sizes is a tuple.
        self._attributes.literal = head.op.endswith(".constant")
        # Branches between blocks do not occur in what jax lowers, and the graph cannot hold them.
        if scan.accept("["):
            scan.fail("an operation without successors")
        if scan.accept("<"):
            self._attributes.read_dictionary(scan, attributes)
            scan.expect(">")
        if scan.next == "(":
            frame = OpenOperation(head, attributes)
            # Before its regions are read, whose operations count their own.
            frame.unknown = self._claim_unknown(head)
            self._open(frame)
            return
        tail, end = self._read_tail(head, attributes)
        if end - after <= _LONGEST:
            self._tails[head.op, scan.text[after:end]] = tail
        self._finish(head, tail, self._read_location(), ())

    def _read_head(self) -> tuple[OperationHead, int]:
        """Read `%0:2 = "op"(%a, %b)`; return it with its end position."""
        scan = self._scan
        line = scan.line
        key = count = ""
        if scan.next[0] == "%":
            key = scan.advance()
            if scan.accept(":"):
                count = str(scan.read_integer())
            scan.expect("=")
        op = scan.read_string()
        operands = scan.read_list("(", ")", self._read_operand)
        after = scan.before
        values = self._values.resolve(", ".join(operands), line) if operands else []
        return OperationHead(key, count, op, values, line), after

    def _read_operand(self) -> str:
        if self._scan.next[:1] != "%":
            self._scan.fail("an operand or ')'")
        return self._scan.advance()

    def _read_tail(
        self, head: OperationHead, attributes: dict[str, Attribute]
    ) -> tuple[OperationTail, int]:
        """Read the attributes and types after the regions; return them with their end position."""
        scan = self._scan
        if scan.next == "{":
            self._attributes.read_dictionary(scan, attributes)
        scan.expect(":")
        operand_types, types = self._types.read_signature(scan)
        of = types[0] if len(types) == 1 else types
        return OperationTail(
            attributes, of, operand_types, len(types), self._claim_unknown(head)
        ), scan.before

    def _claim_unknown(self, head: OperationHead) -> tuple[str, ...]:
        """Return the parts of an operation that are not understood, and forget them."""
        unknown = tuple(f"{part} of {head.op}" for part in self._unknown)
        self._unknown.clear()
        return unknown

    def _read_location(self) -> Origin:
        return self._locations.read(self._scan) if self._scan.next == "loc" else NOWHERE

    def _finish(
        self,
        head: OperationHead,
        tail: OperationTail,
        origin: Origin,
        bodies: tuple[tuple[str, Computation], ...],
    ) -> None:
        """Add an operation to the region, the module or the text that holds it."""
        if len(self._stack) > 1:
            self._add(head, tail, origin, bodies)
            return
        self._not_understood.update(tail.unknown)
        if not self._stack:
            if head.op != "builtin.module":
                self._scan.fail("a module before it")
            self._module = self._symbols.build_module(tail.attributes, head.line)
        elif head.op == "func.func" and len(bodies) == 1:
            self._symbols.add_function(bodies[0][1], tail.attributes, head.line)
        else:
            self._symbols.add_operation(head.op, tail.attributes, head.line)
            if bodies:
                self._not_understood[f"regions of {head.op} in the module"] += 1

    def _add(
        self,
        head: OperationHead,
        tail: OperationTail,
        origin: Origin,
        bodies: tuple[tuple[str, Computation], ...] = (),
    ) -> None:
        """Add an operation to the open region; a terminator ends the region."""
        name, _, op, values, line = head
        frame = self._stack[-1]
        self._check(head, tail)
        if tail.unknown:
            self._not_understood.update(tail.unknown)
        # The terminators of all dialects end like this; in the graph they are the results.
        if not tail.result_count and op.endswith(_ENDS):
            frame.region.results = values
            for attribute, value in tail.attributes.items():
                frame.region.attributes[f"return {attribute}"] = value
            frame.has_ended = True
            return
        operands, paths = zip(*values, strict=True) if values else ((), ())
        made = Instruction(
            name[1:] or self._make_unique(op),
            op,
            tail.type,
            operands,
            paths,
            # A copy, because calls pop their callee and passes rewrite it, and the tail is cached.
            tail.attributes.copy(),
            bodies,
            origin,
            line,
        )
        frame.region.instructions.append(made)
        if op in CALLS:
            self._symbols.add_call(made)
        if name:
            self._values.define(name, made, tail.result_count)

    def _check(self, head: OperationHead, tail: OperationTail) -> None:
        """Check the place of an operation, and its types against its values."""
        name, count, op, values, line = head
        if self._stack[-1].has_ended:
            refuse(line, op, "'}' after the terminator")
        if len(values) != len(tail.operand_types):
            refuse(line, op, f"as many operands as types, {len(tail.operand_types)}")
        for (maker, path), of in zip(values, tail.operand_types, strict=True):
            made = maker.type[path[0]] if path else maker.type
            # Equal types are one object, so the comparison is rarely needed.
            if made is not of and made != of:
                refuse(line, f"%{maker.name}", "an operand of the type it was given above")
        if name and (count or "1") != str(tail.result_count):
            refuse(line, f"{name}:{count or 1}", f"{tail.result_count} results, as the types say")

    def _open(self, frame: OpenOperation) -> None:
        """Begin the first region of an operation."""
        if not self._stack and frame.head.op != "builtin.module":
            self._scan.fail("a module before it")
        if len(self._stack) >= DEEPEST:
            self._scan.fail(f"regions nested at most {DEEPEST} deep")
        # A function sees no values of another.
        if len(self._stack) == 1:
            self._values = ValueScopes()
        self._stack.append(frame)
        self._scan.expect("(")
        self._begin_region(frame)

    def _begin_region(self, frame: OpenOperation) -> None:
        self._scan.expect("{")
        if len(self._stack) > 1:
            self._values.enter()
        head = frame.head
        role = get_role(head.op, len(frame.bodies))
        # The module and its functions have names in the text.
        is_named = len(self._stack) <= len(("module", "function"))
        name = "" if is_named else self._make_unique(f"{head.name[1:] or head.op}.{role}")
        frame.region = Computation(name)
        frame.bodies.append((role, frame.region))
        frame.has_block = frame.has_ended = False

    def _read_block(self) -> None:
        """Read `^bb0(%arg0: type loc(...), ...):`."""
        scan, frame = self._scan, self._stack[-1] if self._stack else None
        if frame is None or frame.has_block or frame.region.instructions or frame.has_ended:
            scan.fail("one block a region")
        frame.has_block = True
        scan.advance()
        if scan.next == "(":
            scan.read_list("(", ")", lambda: self._read_parameter(frame))
        scan.expect(":")

    def _read_parameter(self, frame: OpenOperation) -> None:
        scan = self._scan
        line = scan.line
        if scan.next[:1] != "%" or len(self._stack) == 1:  # a module takes nothing
            scan.fail("an argument or ')'")
        key = scan.advance()
        scan.expect(":")
        of = self._types.read(scan)
        index: dict[str, Attribute] = {"index": len(frame.region.instructions)}
        made = Instruction(
            key[1:], "parameter", of, attributes=index, origin=self._read_location(), line=line
        )
        frame.region.instructions.append(made)
        self._values.define(key, made, 1)

    def _end_region(self) -> None:
        scan, frame = self._scan, self._stack[-1]
        scan.advance()
        if len(self._stack) > 1:
            self._values.leave()
        if scan.accept(","):
            self._begin_region(frame)
            return
        scan.expect(")")
        self._stack.pop()
        tail, _ = self._read_tail(frame.head, frame.attributes)
        tail = tail._replace(unknown=frame.unknown + tail.unknown)
        self._finish(frame.head, tail, self._read_location(), tuple(frame.bodies))

    def _make_unique(self, name: str) -> str:
        """Return a new name for an instruction or region without one."""
        self._names[name] += 1
        times = self._names[name]
        return name if times == 1 else f"{name}.{times - 1}"
