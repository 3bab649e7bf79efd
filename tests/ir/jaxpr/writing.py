"""The graph of a jaxpr written: as the JSON that `parse` reads, and as text for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conformance.ir.fingerprint import spell_type
from conformance.ir.graph import Opaque, Tensor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.ir.graph import Attribute, Computation, Instruction, Module, Origin

Result = tuple["Instruction", tuple[int, ...]]


def dump(module: Module) -> str:
    """Return a module as JSON, from which `parse` makes the same graph.

    Args:
        module: A module of the kind `jaxpr`: no tuple within a tuple among its types.

    Returns:
        One line of JSON.
    """
    return json.dumps(_Writer().document(module), separators=(",", ":"))


class _Table:
    """Entries by number, each once."""

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, key: Any, entry: Any) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self.entries)
            self.entries.append(entry)
        return self._numbers[key]


class _Writer:
    """Writes one module."""

    def __init__(self) -> None:
        self._files, self._sources, self._avals = _Table(), _Table(), _Table()
        self._computations: dict[int, int] = {}

    def document(self, module: Module) -> dict[str, Any]:
        computations = in_order(module)
        self._computations = {id(computation): n for n, computation in enumerate(computations)}
        jaxprs = [self._jaxpr(computation) for computation in computations]
        return {
            "form": 1,
            "name": module.name,
            "files": self._files.entries,
            "sources": self._sources.entries,
            "avals": self._avals.entries,
            "jaxprs": jaxprs,
        }

    def _jaxpr(self, computation: Computation) -> dict[str, Any]:
        numbers: dict[Result, int] = {}
        eqns = [self._eqn(instruction, numbers) for instruction in computation.instructions]
        out = [numbers[result] for result in computation.results]
        return {"consts": [], "in": [], "eqns": eqns, "out": out}

    def _eqn(self, instruction: Instruction, numbers: dict[Result, int]) -> list[Any]:
        uses = zip(instruction.operands, instruction.paths, strict=True)
        inputs = [numbers[use] for use in uses]
        for result, _ in results_of(instruction):
            numbers[instruction, result] = len(numbers)
        bodies = {
            role: {"jaxpr": self._computations[id(inner)]} for role, inner in instruction.bodies
        }
        return [
            instruction.op,
            inputs,
            [self._aval(tensor) for _, tensor in results_of(instruction)],
            {**{k: self._value(v) for k, v in instruction.attributes.items()}, **bodies},
            self._source(instruction.origin),
        ]

    def _aval(self, tensor: Tensor) -> int:
        more = [{"space": tensor.space}] if tensor.space else []
        return self._avals.number(tensor, [tensor.dtype, tensor.shape, *more])

    def _value(self, value: Attribute) -> Any:
        match value:
            case Tensor():
                return {"aval": self._aval(value)}
            case Opaque():
                return {"text": value.text}
            case tuple():
                return [self._value(part) for part in value]
            case _:
                return value

    def _source(self, origin: Origin) -> int:
        file = self._files.number(origin.file, origin.file) if origin.file else -1
        return self._sources.number(origin, [origin.name, file, origin.line])


def results_of(instruction: Instruction) -> Iterator[tuple[tuple[int, ...], Tensor]]:
    """Yield the path and the type of each result of an equation."""
    if isinstance(instruction.type, Tensor):
        yield (), instruction.type
        return
    for number, tensor in enumerate(instruction.type):
        assert isinstance(tensor, Tensor), f"{instruction} has a tuple in a tuple"
        yield (number,), tensor


def in_order(module: Module) -> list[Computation]:
    """Return the computations of a module, each once, before those it calls."""
    ordered, seen = [module.entry], {id(module.entry)}
    for computation in ordered:  # grows under way
        for instruction in computation.instructions:
            for _, inner in instruction.bodies:
                if id(inner) not in seen:
                    seen.add(id(inner))
                    ordered.append(inner)
    return ordered


def print_module(module: Module) -> str:
    """Return a module as text for people: an equation a line, attributes in order of their names.

    Args:
        module: A module of the kind `jaxpr`.

    Returns:
        The text: each computation once, named by the place that calls it first.
        Constants and literals are written where they are used, sources are left out.
    """
    called = {id(module.entry): module.name or "jaxpr"}
    return "\n".join(_print(computation, called) for computation in in_order(module))


def _print(computation: Computation, called: dict[int, str]) -> str:
    """Return one computation as text; those it calls first are named after their places."""
    here, names = called[id(computation)], dict(_names(computation))
    for instruction in computation.instructions:
        for role, inner in instruction.bodies:
            called.setdefault(id(inner), f"{here}.{names[instruction]}.{role.replace(' ', '-')}")
    head = f"{here}{_attributes(computation.attributes)}:"
    lines = [
        f"  {_line(instruction, names, called)}"
        for instruction in computation.instructions
        if instruction.op != "literal"
    ]
    results = ", ".join(_use(use, names) for use in computation.results)
    return "\n".join([head, *lines, f"  return {results}".rstrip(), ""])


def _names(computation: Computation) -> Iterator[tuple[Instruction, str]]:
    """Yield how each instruction is called: by its number, a literal by what it is."""
    number = 0
    for instruction in computation.instructions:
        if instruction.op == "literal":
            value = _spell(instruction.attributes["value"])
            yield instruction, f"{value}:{spell_type(instruction.type)}"
        else:
            yield instruction, f"v{number}"
            number += 1


def _line(instruction: Instruction, names: dict[Instruction, str], called: dict[int, str]) -> str:
    uses = zip(instruction.operands, instruction.paths, strict=True)
    operands = ", ".join(_use(use, names) for use in uses)
    bodies = "".join(f" {role}=@{called[id(inner)]}" for role, inner in instruction.bodies)
    head = f"{names[instruction]}: {spell_type(instruction.type)} = {instruction.op}({operands})"
    return f"{head}{_attributes(instruction.attributes)}{bodies}"


def _use(use: Result, names: dict[Instruction, str]) -> str:
    instruction, path = use
    return ".".join([names[instruction], *map(str, path)])


def _attributes(attributes: dict[str, Attribute]) -> str:
    return "".join(f" {name}={_spell(value)}" for name, value in sorted(attributes.items()))


def _spell(value: Attribute) -> str:
    match value:
        case Tensor():
            return spell_type(value)
        case Opaque():
            return f"<{value.text}>"
        case tuple():
            return f"({', '.join(map(_spell, value))})"
        case str():
            return value if value.isidentifier() else json.dumps(value)
        case _:
            return repr(value)
