"""Helpers of the tests of MLIR: a module around operations, and equality of graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.ir.mlir import parse

if TYPE_CHECKING:
    from conformance.ir.graph import Attribute, Computation, Instruction, Module

MESHES = tuple(
    f'"sdy.mesh"() <{{mesh = #sdy.mesh<{mesh}>, sym_name = "{name}"}}> : () -> ()'
    for name, mesh in {
        "mesh": '["x"=2, "y"=2]',
        "line": '["a"=8]',
        "odd": '["x"=2, "y"=2], device_ids=[0, 2, 1, 3]',
        "one": "[], device_ids=[3]",
        "empty": "[]",
    }.items()
)
MAIN = (
    "arg_attrs = [{}], function_type = (tensor<4xf32>) -> (), res_attrs = [], "
    'sym_name = "main", sym_visibility = "public"'
)


def text(*lines: str, others: tuple[str, ...] = MESHES) -> str:
    """Return a module whose function `main` takes a vector `%x` and consists of some lines."""
    return "\n".join(
        [
            '"builtin.module"() <{sym_name = "m"}> ({',
            *[f"  {line}" for line in others],
            f'  "func.func"() <{{{MAIN}}}> ({{',
            "  ^bb0(%x: tensor<4xf32>):",
            *[f"    {line}" for line in lines],
            '    "func.return"() : () -> ()',
            "  }) : () -> ()",
            "}) : () -> ()",
            "",
        ]
    )


def operation(*lines: str) -> Instruction:
    """Return the last of some operations."""
    return parse(text(*lines)).entry.instructions[-1]


def attributes(spelled: str) -> dict[str, Attribute]:
    """Return the attributes of an operation with one attribute, as spelled."""
    return operation(f'"a.b"() <{{key = {spelled}}}> : () -> ()').attributes


def attribute(spelled: str) -> Attribute:
    """Return the value of an attribute."""
    return attributes(spelled)["key"]


def constant(spelled: str) -> Attribute:
    """Return the value of a constant, spelled with its type: `dense<1> : tensor<i32>`."""
    of = spelled.rpartition(" : ")[2]
    line = f'%c = "stablehlo.constant"() <{{value = {spelled}}}> : () -> {of}'
    return operation(line).attributes["value"]


def plain(module: Module) -> tuple[Any, ...]:
    """Return all that a module says but lines and origins, as data that can be compared."""
    named = {id(one) for one in module.computations.values()}

    def link(one: Instruction, path: tuple[int, ...]) -> tuple[Any, ...]:
        return one.name, one.op, path

    def of(one: Instruction) -> tuple[Any, ...]:
        operands = [link(*each) for each in zip(one.operands, one.paths, strict=True)]
        bodies = [
            (role, body.name if id(body) in named else inside(body)) for role, body in one.bodies
        ]
        return one.name, one.op, one.type, operands, list(one.attributes.items()), bodies

    def inside(one: Computation) -> tuple[Any, ...]:
        results = [link(*each) for each in one.results]
        return one.name, one.attributes, [of(each) for each in one.instructions], results

    return (
        (module.kind, module.name, module.entry.name, module.attributes, module.not_understood),
        [inside(one) for one in module.computations.values()],
    )
