"""The text of a module in normal form, which goldens hold and diffs load again.

It has an instruction a line, and callees before their callers. Names and order depend on the graph
alone: two modules with the same fingerprint have the same text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.ir.fingerprint import fingerprint, hash_module, spell_type
from conformance.ir.graph import (
    Computation,
    Instruction,
    IrSyntaxError,
    Module,
    Opaque,
    Sharding,
    Tensor,
    walk_post_order,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.ir.fingerprint import Fingerprints
    from conformance.ir.graph import Attribute, Type, Value

VERSION: Final = 1
"""Version of the normal forms: the fingerprints of different versions cannot be compared."""

_HEAD: Final = "conformance-ir"
_KINDS: Final = ("hlo", "stablehlo", "jaxpr")


def is_canonical(text: str) -> bool:
    """Say whether a text is in the canonical form, as `dumps` writes it."""
    return text.startswith(f"{_HEAD} ")


def dumps(module: Module) -> str:
    """Return a module as text.

    Args:
        module: In normal form.

    Returns:
        The text, ending in a newline.
    """
    return "\n".join(_Printer(module).print_module()) + "\n"


class _Printer:
    def __init__(self, module: Module) -> None:
        self._module = module
        # As in the canonical form: names and order must not depend on the order of operands.
        self._hashes: Fingerprints = hash_module(module, commutative=True)
        self._names: dict[bytes, str] = {}
        self._taken: Counter[str] = Counter()

    def print_module(self) -> Iterator[str]:
        neutral = fingerprint(self._module, self._hashes)
        yield f"{_HEAD} {VERSION} {self._module.kind} {neutral}"
        for name, value in sorted(self._module.attributes.items()):
            yield f"{name} = {_render_attribute(value)}"
        # By the calls in the printed order, from which that of `find_reachable` may differ.
        order = walk_post_order(
            [self._module.entry], lambda inner: [b for i in self._order(inner) for _, b in i.bodies]
        )
        for computation in order:
            found = self._hashes.computations[id(computation)]
            # Equal computations are printed once, whether or not the module shared them.
            if found not in self._names:
                self._names[found] = self._name(computation)
                yield from self._print_computation(computation, self._names[found])

    def _name(self, computation: Computation) -> str:
        if computation is self._module.entry:
            return "entry"
        work = [i for i in computation.instructions if i.op != "parameter"]
        match work:
            case [Instruction(op=op, type=Tensor(dtype=dtype))]:
                # A reducer is named by its operation: `add_f32`.
                stem = first = f"{op}_{dtype}"
            case _:
                stem, first = "computation", "computation.1"
        self._taken[stem] += 1
        count = self._taken[stem]
        return first if count == 1 else f"{stem}.{count}"

    def _print_computation(self, computation: Computation, title: str) -> Iterator[str]:
        names: dict[Instruction, str] = {}
        counts: Counter[str] = Counter()
        yield ""
        attributes = [
            f"{name}={_render_attribute(value)}"
            for name, value in sorted(computation.attributes.items())
        ]
        yield f"{', '.join([title, *attributes])} {{"
        for instruction in self._order(computation):
            counts[instruction.op] += 1
            names[instruction] = f"%{instruction.op}.{counts[instruction.op]}"
            yield "  " + self._print_instruction(instruction, names)
        results = ", ".join(_render_value(value, names) for value in computation.results)
        yield f"  return {results}".rstrip()
        yield "}"

    def _print_instruction(self, instruction: Instruction, names: dict[Instruction, str]) -> str:
        operands = ", ".join(_render_value(value, names) for value in instruction.inputs)
        head = f"{names[instruction]} = {spell_type(instruction.type)} {instruction.op}({operands})"
        extra = [
            f"{name}={_render_attribute(value)}"
            for name, value in sorted(instruction.attributes.items())
        ]
        extra += [
            f"{role}=@{self._names[self._hashes.computations[id(inner)]]}"
            for role, inner in instruction.bodies
        ]
        return ", ".join([head, *extra])

    def _order(self, computation: Computation) -> list[Instruction]:
        """Return instructions in an order that depends on the graph alone."""
        by_hash = self._hashes.instructions.__getitem__
        roots = [*computation.parameters, *(producer for producer, _ in computation.results)]
        reached = list(_walk(roots))
        if len(reached) == len(computation.instructions):
            return reached
        # Effects that nothing reads, such as an outfeed, are reached from no result. Of those with
        # equal hashes the first is the one that the first of their readers reaches first.
        read = {operand for node in computation.instructions for operand in node.operands}
        last = sorted((node for node in computation.instructions if node not in read), key=by_hash)
        by_readers = list(_walk([*roots, *last]))
        return list(_walk([*roots, *sorted(by_readers, key=by_hash)]))


def _walk(roots: Sequence[Instruction]) -> Iterator[Instruction]:
    return walk_post_order(roots, lambda node: node.operands)


def _render_value(value: Value, names: dict[Instruction, str]) -> str:
    producer, path = value
    return ":".join([names[producer], *map(str, path)])


def _render_attribute(value: Attribute) -> str:
    # JSON keeps the types of attributes apart: `1`, `"1"`, `true` and `1.0` are four values.
    return json.dumps(_to_json(value), ensure_ascii=False, separators=(",", ":"))


def _to_json(value: Attribute) -> Any:
    match value:
        case Sharding():
            return {"sharding": [_to_json(part) for part in value]}
        case Opaque():
            return {"opaque": value.text}
        case Tensor():
            return {"tensor": spell_type(value)}
        case tuple():
            return [_to_json(part) for part in value]
        case _:
            return value


def loads(text: str) -> Module:
    """Return the module of a text that `dumps` wrote.

    Args:
        text: The text.

    Raises:
        IrSyntaxError: If the text is malformed; the message names the line.
    """
    return _Loader().load(text)


class Head(NamedTuple):
    """The first line of a text.

    Attributes:
        version: Version of the normal form.
        kind: Kind of the IR.
        fingerprint: Fingerprint of the module.
    """

    version: int
    kind: str
    fingerprint: str


def read_head(text: str) -> Head:
    """Return the content of the first line of a text that `dumps` wrote.

    Args:
        text: The text.

    Raises:
        IrSyntaxError: If the line is malformed.
    """
    line = text.partition("\n")[0]
    match = _FIRST.fullmatch(line)
    if match is None:
        raise IrSyntaxError(f"line 1: got {line[:80]!r}, expected `{_HEAD} VERSION KIND HASH`")
    if match[2] not in _KINDS:
        raise IrSyntaxError(f"line 1: got kind {match[2]!r}, expected one of {', '.join(_KINDS)}")
    return Head(int(match[1]), match[2], match[3])


_FIRST = re.compile(rf"{_HEAD} (\d+) (\w+) ([0-9a-f]+)")
_LINE = re.compile(r"  (%\S+) = (.+?) ([^\s()]+)\(((?:%[^\s,()]+(?:, )?)*)\)(?:, (.*))?")
_REFERENCE = re.compile(r"%[^\s,()]+")
_NAME = re.compile(r"(?:, )?([^=,]+)=")
# A string attribute may begin with `@` as well, but it is quoted.
_BODY = re.compile(r"@(\S+?)(?=, |$)")
_INNERMOST = r"<(?:->|[^<>])*>"
_INNER = rf"<(?:->|[^<>]|{_INNERMOST})*>"
_ANGLES = rf"<(?:->|[^<>]|{_INNER})*>"
# A dtype may contain angle brackets, with anything in them: `key<fry>[2]{0}S(5)`,
# `memref<f32, strided<[8, 1]>>[8,8]`.
_TENSOR = re.compile(
    rf"([^\[\](){{}},<]+(?:{_ANGLES})?)\[([^\]]*)\](?:\{{([^}}]*)\}})?(?:S\((\w+)\))?"
)
_DECODER = json.JSONDecoder()


class _Loader:
    def __init__(self) -> None:
        self._computations: dict[str, Computation] = {}
        self._types: dict[str, Type] = {}

    def load(self, text: str) -> Module:
        lines = text.split("\n")
        kind = read_head(text).kind
        attributes: dict[str, Attribute] = {}
        current: Computation | None = None
        names: dict[str, Instruction] = {}
        returned = False
        for number, line in enumerate(lines[1:], start=2):
            try:
                if line.endswith(" {") and current is None:
                    current, names, returned = self._read_title(line[:-2]), {}, False
                elif line == "}" and current is not None:
                    self._close(current, returned=returned)
                    current = None
                elif current is None:
                    if line:
                        name, _, value = line.partition(" = ")
                        attributes[name] = _from_json(json.loads(value))
                elif line.startswith("  return"):
                    found = _REFERENCE.findall(line)
                    current.results = [_read_value(reference, names) for reference in found]
                    returned = True
                else:
                    instruction = self._read_instruction(line, names)
                    instruction.line = number
                    names[instruction.name] = instruction
                    current.instructions.append(instruction)
            # All that a damaged line causes below; goldens are edited and merged by people.
            except (ValueError, KeyError, IndexError, TypeError) as error:
                raise IrSyntaxError(
                    f"line {number}: got {line[:120]!r}, expected a line of a normal form: {error}"
                ) from None
        if current is not None or "entry" not in self._computations:
            raise IrSyntaxError(
                f"line {len(lines)}: the text ends early, expected `entry {{ ... }}`"
            )
        return Module(
            kind=kind,
            name="",
            entry=self._computations["entry"],
            attributes=attributes,
            computations=self._computations,
        )

    def _close(self, computation: Computation, *, returned: bool) -> None:
        if not returned:
            raise ValueError("a computation without `return`")
        if computation.name in self._computations:
            raise ValueError(f"a second computation {computation.name}")
        self._computations[computation.name] = computation

    def _read_title(self, text: str) -> Computation:
        name, _, extra = text.partition(", ")
        return Computation(name=name, attributes=dict(self._read_attributes(extra)))

    def _read_instruction(self, line: str, names: dict[str, Instruction]) -> Instruction:
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError("not `%name = type op(operands), name=value`")
        name, type_, op, operands, extra = match.groups()
        values = [_read_value(reference, names) for reference in _REFERENCE.findall(operands)]
        instruction = Instruction(name=name, op=op, type=self._read_type(type_))
        instruction.inputs = values
        bodies = []
        for key, value in self._read_attributes(extra or ""):
            if isinstance(value, Computation):
                bodies.append((key, value))
            else:
                instruction.attributes[key] = value
        instruction.bodies = tuple(bodies)
        # Passes sort parameters by it. A bool is an int in Python, but not a number here.
        if op == "parameter" and type(instruction.attributes.get("index")) is not int:
            raise ValueError("a parameter without its number")
        return instruction

    def _read_attributes(self, text: str) -> Iterator[tuple[str, Any]]:
        """Yield name and value of each attribute of `a=1, to_apply=@add_f32`."""
        position = 0
        while position < len(text):
            key = _NAME.match(text, position)
            if key is None:
                raise ValueError("an attribute without `=`")
            body = _BODY.match(text, key.end())
            if body is not None:
                position = body.end()
                yield key[1], self._computations[body[1]]
            else:
                # The decoder finds the end: a JSON string may hold `, name=`.
                plain, position = _DECODER.raw_decode(text, key.end())
                yield key[1], _from_json(plain)

    def _read_type(self, text: str) -> Type:
        found = self._types.get(text)
        if found is None:
            found, end = read_type(text, 0)
            if end != len(text):
                raise ValueError(f"{text[end:]!r} after a type")
            self._types[text] = found
        return found


def _read_value(text: str, names: dict[str, Instruction]) -> Value:
    name, *path = text.split(":")
    return names[name], tuple(map(int, path))


def read_type(text: str, start: int) -> tuple[Type, int]:
    """Read a type as `fingerprint.spell_type` writes it.

    Args:
        text: Text with the type.
        start: Its first position.

    Returns:
        The type, and the position after it.

    Raises:
        ValueError: If no type begins there.
    """
    if not text.startswith("(", start):
        match = _TENSOR.match(text, start)
        if match is None:
            raise ValueError(f"{text[start : start + 40]!r} is no type")
        sizes = tuple(int(s) if s.isdigit() else s for s in match[2].split(",") if s)
        return Tensor(match[1], sizes, match[3] or "", match[4] or ""), match.end()
    parts: list[Type] = []
    start += 1
    while not text.startswith(")", start):
        part, start = read_type(text, start)
        parts.append(part)
        if text.startswith(", ", start):
            start += 2
    return tuple(parts), start + 1


def _from_json(plain: Any) -> Attribute:
    match plain:
        case {"sharding": [kind, tiles, devices, subgroups, parts]}:
            return Sharding(
                kind,
                tuple(tiles),
                tuple(devices),
                tuple(subgroups),
                tuple(part for part in map(_from_json, parts) if isinstance(part, Sharding)),
            )
        case {"opaque": text}:
            return Opaque(text)
        case {"tensor": text}:
            return read_type(text, 0)[0]
        case list():
            return tuple(_from_json(part) for part in plain)
        case None | bool() | int() | float() | str():
            return plain
        case _:
            raise ValueError(f"{plain} is no attribute")
