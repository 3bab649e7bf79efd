"""Small texts of each kind, and helpers that parse and normalise them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.analysis import detect_kind, parse_ir
from conformance.ir.fingerprint import fingerprint, hash_module
from conformance.ir.normal.forms import to_canonical, to_exact

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.ir.graph import Computation, Instruction, Module

ADD = """%add {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}"""
STEPS = """%condition {
  %p = (s32[], f32[4], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %most = s32[] constant(5)
  ROOT %less = pred[] compare(%i, %most), direction=LT
}

%body {
  %p = (s32[], f32[4], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %x = f32[4] get-tuple-element(%p), index=1
  %w = f32[4] get-tuple-element(%p), index=2
  %one = s32[] constant(1)
  %j = s32[] add(%i, %one)
  %z = f32[4] multiply(%x, %w)
  ROOT %r = (s32[], f32[4], f32[4]) tuple(%j, %z, %w)
}"""
"""A loop that carries a counter, `x`, and `w`, which it only reads."""
LOOP = (
    "%zero = s32[] constant(0)",
    "%t = (s32[], f32[4], f32[4]) tuple(%zero, %x, %y)",
    "%loop = (s32[], f32[4], f32[4]) while(%t), condition=%condition, body=%body",
    "%r = f32[4] get-tuple-element(%loop), index=1",
)


def hlo(*lines: str, before: str = "", head: str = "HloModule m") -> str:
    """Return HLO whose entry takes `x` and `y` and consists of some lines, the last its result."""
    entry = ["%x = f32[4]{0} parameter(0)", "%y = f32[4]{0} parameter(1)", *lines]
    body = "\n".join(f"  {line}" for line in entry)
    return f"{head}\n\n{before}\n\nENTRY %main {{\n{body}\n}}\n"


def stablehlo(*lines: str, results: tuple[str, ...] = ("%r",), types: str = "tensor<4xf32>") -> str:
    """Return StableHLO whose function `main` takes `x` and `y` and consists of some lines."""
    returned = ", ".join(results)
    result_types = ", ".join([types] * len(results))
    return "\n".join(
        [
            '"builtin.module"() <{sym_name = "m"}> ({',
            '  "func.func"() <{function_type = (tensor<4xf32>, tensor<4xf32>) -> ()',
            '  , sym_name = "main"}> ({',
            "  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):",
            *[f"    {line}" for line in lines],
            f'    "func.return"({returned}) : ({result_types}) -> ()',
            "  }) : () -> ()",
            "}) : () -> ()",
            "",
        ]
    )


def module(text: str) -> Module:
    """Return a text's module, as parsed."""
    return parse_ir(text, str(detect_kind(text)))


def after(text: str, *passes: Callable[[Module], object]) -> Module:
    """Return a text's module after some passes."""
    made = module(text)
    for step in passes:
        step(made)
    return made


def fingerprint_of(module: Module) -> str:
    """Return the fingerprint of a module as it is."""
    return fingerprint(module, hash_module(module))


def structure(text: str) -> str:
    """Return the fingerprint of a text's form `exact`."""
    return to_exact(module(text))


def settled(text: str) -> Module:
    """Return a text's module in the form `canonical`."""
    return after(text, to_exact, to_canonical)


def neutral(text: str) -> str:
    """Return the fingerprint of a text's form `canonical`."""
    made = module(text)
    to_exact(made)
    return to_canonical(made)


def ops(computation: Computation | Module) -> list[str]:
    """Return the operations of a computation, or of a module's entry, parameters left aside."""
    inner = computation if hasattr(computation, "instructions") else computation.entry
    return [one.op for one in inner.instructions if one.op != "parameter"]


def the(found: Module, op: str) -> Instruction:
    """Return the one instruction of an operation."""
    (one,) = (one for one in found.walk() if one.op == op)
    return one


def reads(instruction: Instruction) -> list[str]:
    """Return what an instruction reads, e.g. `x`, or `loop:1` for a part of a result."""
    values = instruction.inputs
    return [":".join([producer.name, *map(str, path)]) for producer, path in values]
