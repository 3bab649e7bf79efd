"""From the graph of an HLO module to text that `parse` reads back."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from conformance.ir.graph import Attribute, Computation, Instruction, Module, Opaque, Sharding
from conformance.ir.hlo.attributes import COMPUTATIONS
from tests.ir.hlo.spelling import (
    SPELLERS,
    spelled_literal,
    spelled_origin,
    spelled_plain,
    spelled_sharding,
    spelled_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = {role: name for name, role in COMPUTATIONS.items() if name != "comparator"}


def print_module(module: Module) -> str:
    """Return the text of a module, one line an instruction."""
    return "\n".join(_lines(module)) + "\n"


def _lines(module: Module) -> Iterator[str]:
    yield f"HloModule {module.name}{_attributes(module.attributes)}"
    for computation in module.computations.values():
        yield ""
        yield f"{'ENTRY ' * (computation is module.entry)}%{computation.name} {{"
        for instruction in computation.instructions:
            yield _instruction(instruction, computation)
        yield f"}}{_attributes(computation.attributes)}"


def _instruction(instruction: Instruction, computation: Computation) -> str:
    root = any(result is instruction for result, _ in computation.results)
    rest = instruction.attributes
    if instruction.op in {"constant", "parameter"}:
        key = "value" if instruction.op == "constant" else "index"
        operands = spelled_literal(rest.get(key))
        rest = {name: value for name, value in rest.items() if name != key}
    else:
        operands = ", ".join(map(_operand, instruction.operands, instruction.paths))
    metadata = spelled_origin(instruction.origin)
    return (
        f"  {'ROOT ' * root}%{instruction.name} = {spelled_type(instruction.type)}"
        f" {instruction.op}({operands}){_attributes(rest)}{_bodies(instruction)}"
        f"{', metadata=' * bool(metadata)}{metadata}"
    )


def _operand(instruction: Instruction, path: tuple[int, ...]) -> str:
    return f"%{instruction.name}{''.join([f'#{n}' for n in path])}"


def _attributes(attributes: dict[str, Attribute]) -> str:
    return "".join([f", {name}={_spelled(name, value)}" for name, value in attributes.items()])


def _spelled(name: str, value: Attribute) -> str:
    if isinstance(value, Opaque):
        return value.text
    if isinstance(value, Sharding):
        return spelled_sharding(value)
    return SPELLERS.get(name, spelled_plain)(value)


def _bodies(instruction: Instruction) -> str:
    """Return `, to_apply=%add`, or lists of them for numbered roles, in the instruction's order."""
    texts: list[str] = []
    for name, group in groupby(instruction.bodies, lambda body: _attribute_of(body[0])):
        roles, called = zip(*group, strict=True)
        names = ", ".join([f"%{computation.name}" for computation in called])
        texts.append(f", {name}={names if roles[0] in _NAMES else f'{{{names}}}'}")
    return "".join(texts)


def _attribute_of(role: str) -> str:
    """Return the attribute that names the computation of a role."""
    if role in _NAMES:
        return _NAMES[role]
    head = role.rpartition(" ")[0]
    return _NAMES.get(f"{head} {{}}", head)
