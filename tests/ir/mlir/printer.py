"""From the graph to MLIR's generic form, without locations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from conformance.ir.graph import Computation, Instruction, IrSyntaxError, Module, Tensor
from conformance.ir.mlir.symbols import CALLS
from tests.ir.mlir import spelling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.ir.graph import Attribute, Type

_NAME = re.compile(r"[\w$.-]+")

_Link: TypeAlias = tuple[Instruction, tuple[int, ...]]
Pairs: TypeAlias = "Iterable[tuple[str, Attribute]]"


class _Nested(NamedTuple):
    """An operation that is to be written at a depth."""

    instruction: Instruction
    depth: int


def print_module(module: Module) -> str:
    """Return a text which `parse` reads to the same graph; locations are left out.

    Raises:
        IrSyntaxError: If an operand is an element of a nested tuple, which MLIR cannot say.
    """
    return "\n".join(_Printer(module).lines()) + "\n"


class _Printer:
    """Writes one module."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._keys: dict[int, str] = {}
        self._used: set[str] = set()
        self._whole: set[int] = set()
        for computation in _everything(module):
            for instruction in computation.instructions:
                self._note(zip(instruction.operands, instruction.paths, strict=True))
            self._note(computation.results)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text."""
        others = {k: v for k, v in self._module.attributes.items() if " @" in k}
        plain = [
            (name, spelling.value(value))
            for name, value in self._module.attributes.items()
            if name not in others
        ]
        name = [("sym_name", spelling.value(self._module.name))] if self._module.name else []
        yield f'"builtin.module"(){_properties(name)} ({{'
        for key, fields in others.items():
            yield _other(key, fields)
        for function in self._module.computations.values():
            yield from self._function(function)
        extra = spelling.dictionary(plain)
        yield f"}}) {extra + ' ' if extra else ''}: () -> ()"

    def _note(self, links: Iterable[_Link]) -> None:
        """Note which results of several parts are used whole."""
        self._whole.update(id(one) for one, path in links if not path)

    def _function(self, function: Computation) -> Iterator[str]:
        self._used.clear()
        own = {k: v for k, v in function.attributes.items() if not k.startswith("return ")}
        is_declared = "function_type" in own
        fields = {} if is_declared else self._signature(function, own)
        fields["sym_name"] = spelling.value(function.name)
        fields |= {name: spelling.value(value) for name, value in own.items()}
        yield f'  "func.func"(){_properties(fields.items())} ({{'
        if not is_declared:
            yield from self._written(self._region(function, "func.return", 2))
        yield "  }) : () -> ()"

    def _signature(self, function: Computation, own: dict[str, Attribute]) -> dict[str, str]:
        """Return what tells of arguments and results; take what of the attributes belongs there."""
        parameters = function.parameters
        arguments = [
            _dictionary((k, v) for k, v in one.attributes.items() if k != "index")
            for one in parameters
        ]
        results = [
            _dictionary(cast("Pairs", own.pop(f"result {number}", ())))
            for number in range(len(function.results))
        ]
        takes = spelling.of_types(one.type for one in parameters)
        gives = spelling.of_types(map(_type_of, function.results))
        return {
            "arg_attrs": f"[{', '.join(arguments)}]",
            "function_type": f"{takes} -> {gives}",
            "res_attrs": f"[{', '.join(results)}]",
        }

    def _written(self, lines: list[str | _Nested]) -> Iterator[str]:
        """Yield lines, and those of the operations still to be written among them."""
        waiting = lines[::-1]
        while waiting:
            item = waiting.pop()
            if isinstance(item, str):
                yield item
            else:
                waiting += reversed(self._operation(*item))

    def _region(self, body: Computation, end: str, depth: int) -> list[str | _Nested]:
        """Return the lines of a region, with operations still to be written among them."""
        space = "  " * depth
        lines: list[str | _Nested] = []
        parameters = body.parameters
        if parameters:
            given = [f"{self._key(p)}: {spelling.of_type(p.type)}" for p in parameters]
            lines.append(f"{space[2:]}^bb0({', '.join(given)}):")
        lines += [_Nested(one, depth) for one in body.instructions if one.op != "parameter"]
        extra = [
            (name.removeprefix("return "), spelling.value(value))
            for name, value in body.attributes.items()
            if name.startswith("return ")
        ]
        lines.append(
            f'{space}"{end}"({self._operands(body.results)}){_properties(extra)} : '
            f"{spelling.of_types(map(_type_of, body.results))} -> ()"
        )
        return lines

    def _operation(self, one: Instruction, depth: int) -> list[str | _Nested]:
        space = "  " * depth
        links = list(zip(one.operands, one.paths, strict=True))
        count, results = self._results(one)
        key = f"{self._key(one)}{f':{count}' if count > 1 else ''} = " if count else ""
        head = f"{space}{key}{spelling.escape(one.op)}({self._operands(links)})"
        head += _properties(self._attributes(one))
        tail = f" : {spelling.of_types(map(_type_of, links))} -> {results}"
        regions = [body for role, body in one.bodies if not _is_called(one.op, role)]
        if not regions:
            return [head + tail]
        end = "sdy.return" if one.op.startswith("sdy.") else "stablehlo.return"
        lines: list[str | _Nested] = [f"{head} ({{"]
        for body in regions:
            lines += self._region(body, end, depth + 1)
            lines.append(f"{space}}}, {{")
        lines[-1] = f"{space}}}){tail}"
        return lines

    def _attributes(self, one: Instruction) -> Iterator[tuple[str, str]]:
        for name, value in one.attributes.items():
            is_value = name == "value" and one.op.endswith(".constant")
            yield name, spelling.constant(value, one.type) if is_value else spelling.value(value)
        called = [spelling.symbol(b.name) for role, b in one.bodies if _is_called(one.op, role)]
        if called:
            attribute, role = CALLS[one.op]
            yield attribute, f"[{', '.join(called)}]" if role == "called" else called[0]

    def _results(self, one: Instruction) -> tuple[int, str]:
        """Return how many results there are, and their types."""
        is_empty = not one.type and not one.name.startswith(one.op)  # `tuple<>` has a name
        if isinstance(one.type, Tensor) or is_empty or id(one) in self._whole:
            return 1, spelling.of_type(one.type)
        single = len(one.type) == 1
        types = spelling.of_type(one.type) if single else spelling.of_types(one.type)
        return len(one.type), types

    def _operands(self, links: Iterable[_Link]) -> str:
        return ", ".join([self._key(one) + _index(path) for one, path in links])

    def _key(self, one: Instruction) -> str:
        """Return the name of a value: the instruction's, if it is fit and free."""
        known = self._keys.get(id(one))
        if known is not None:
            return known
        name = one.name if _NAME.fullmatch(one.name) else "value"
        free, number = name, 0
        while free in self._used:
            number += 1
            free = f"{name}.{number}"
        self._used.add(free)
        self._keys[id(one)] = key = f"%{free}"
        return key


def _everything(module: Module) -> Iterator[Computation]:
    """Yield all computations of a module, with those inside."""
    seen: set[int] = set()
    waiting = list(module.computations.values())
    while waiting:
        computation = waiting.pop()
        if id(computation) in seen:
            continue
        seen.add(id(computation))
        yield computation
        waiting += [body for one in computation.instructions for _, body in one.bodies]


def _is_called(op: str, role: str) -> bool:
    return op in CALLS and role.partition(" ")[0] == CALLS[op][1]


def _index(path: tuple[int, ...]) -> str:
    if len(path) > 1:
        raise IrSyntaxError(f"got the element {path} of a nested tuple, expected results of MLIR")
    return f"#{path[0]}" if path else ""


def _type_of(link: _Link) -> Type:
    of: Type = link[0].type
    for step in link[1]:
        if isinstance(of, Tensor):
            raise IrSyntaxError(f"got element {step} of {of}, expected a tuple")
        of = of[step]
    return of


def _properties(fields: Iterable[tuple[str, str]]) -> str:
    text = spelling.dictionary(fields)
    return f" <{text}>" if text else ""


def _dictionary(fields: Pairs) -> str:
    return spelling.dictionary((name, spelling.value(value)) for name, value in fields) or "{}"


def _other(key: str, fields: Attribute) -> str:
    """Return an operation of the module that is no function."""
    op, _, name = key.partition(" @")
    given: list[tuple[str, str]] = [("sym_name", spelling.value(name))] if name else []
    for field, value in cast("Pairs", fields):
        is_mesh = op == "sdy.mesh" and field == "mesh"
        given.append((field, spelling.mesh(value) if is_mesh else spelling.value(value)))
    return f"  {spelling.escape(op)}(){_properties(given)} : () -> ()"
