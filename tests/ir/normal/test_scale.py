"""Modules that are deep, wide or repetitive: no crash, and acceptable time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.ir.difference import diff
from tests.ir.texts import LOOP, STEPS, hlo, neutral, settled, the

if TYPE_CHECKING:
    from collections.abc import Iterator


def nested(depth: int, op: str = "negate", constant: int = 1) -> str:
    """Return loops within each other, which pass a constant down to the innermost."""
    type_ = "(s32[], f32[4], s32[])"

    def computations() -> Iterator[str]:
        for n in range(depth):
            inner = [f"%z = f32[4] {op}(%x)"]
            if n:
                inner = [
                    "%zero = s32[] constant(0)",
                    f"%t = {type_} tuple(%zero, %x, %w)",
                    f"%l = {type_} while(%t), condition=%condition{n - 1}, body=%body{n - 1}",
                    "%z = f32[4] get-tuple-element(%l), index=1",
                ]
            text = STEPS.replace("(s32[], f32[4], f32[4])", type_).replace(
                "f32[4] get-tuple-element(%p), index=2", "s32[] get-tuple-element(%p), index=2"
            )
            text = text.replace("%one = s32[] constant(1)\n  ", "").replace("%one)", "%w)")
            text = text.replace("%z = f32[4] multiply(%x, %w)", "\n  ".join(inner))
            yield text.replace("%condition {", f"%condition{n} {{").replace(
                "%body {", f"%body{n} {{"
            )

    return hlo(
        f"%c = s32[] constant({constant})",
        "%zero = s32[] constant(0)",
        f"%t = {type_} tuple(%zero, %x, %c)",
        f"%l = {type_} while(%t), condition=%condition{depth - 1}, body=%body{depth - 1}",
        "%r = f32[4] get-tuple-element(%l), index=1",
        before="\n\n".join(computations()),
    )


def wide(count: int, op: str) -> str:
    """Return a loop that carries many values which begin alike; one step does something else."""
    type_ = f"({', '.join(['f32[4]'] * count)})"
    take = [f"%g{n} = f32[4] get-tuple-element(%p), index={n}" for n in range(count)]
    made = [f"%n{n} = f32[4] {'negate' if n else op}(%g{n})" for n in range(count)]
    body = [f"%p = {type_} parameter(0)", *take, *made]
    body.append(f"ROOT %r = {type_} tuple({', '.join(f'%n{n}' for n in range(count))})")
    condition = [f"%p = {type_} parameter(0)", "ROOT %yes = pred[] constant(false)"]
    return hlo(
        f"%t = {type_} tuple({', '.join(['%x'] * count)})",
        f"%l = {type_} while(%t), condition=%condition, body=%body",
        before="\n\n".join(
            f"%{name} {{\n  " + "\n  ".join(lines) + "\n}"
            for name, lines in (("condition", condition), ("body", body))
        ),
    )


def parallel(count: int, op: str, dtype: str = "f32") -> str:
    """Return many operations that have nothing to do with each other."""
    type_ = f"{dtype}[4]"
    lines = [f"%a = {type_} iota(), iota_dimension=0"]
    for n in range(count):
        lines.append(f"%c{n} = {type_} constant({{{n}, {n}, {n}, {n}}})")
        lines.append(f"%m{n} = {type_} {op}(%a, %c{n})")
    results = ", ".join(f"%m{n}" for n in range(count))
    return hlo(*lines, f"%r = ({', '.join([type_] * count)}) tuple({results})")


def equal(count: int, op: str) -> str:
    """Return calls that cannot be distinguished, all of them read."""
    lines = []
    for n in range(count):
        lines.append(f'%m{n} = f32[4] custom-call(%x), custom_call_target="f"')
        lines.append(f"%n{n} = f32[4] {op}(%m{n}, %y)")
    results = ", ".join(f"%n{n}" for n in range(count))
    return hlo(*lines, f"%r = ({', '.join(['f32[4]'] * count)}) tuple({results})")


def chain(count: int, op: str) -> str:
    """Return functions that each call the next one twice."""
    first = f"%f0 {{\n  %p = f32[4] parameter(0)\n  ROOT %r = f32[4] {op}(%p)\n}}"
    others = [
        f"%f{n} {{\n  %p = f32[4] parameter(0)\n  %a = f32[4] call(%p), to_apply=%f{n - 1}\n"
        f"  %b = f32[4] call(%a), to_apply=%f{n - 1}\n  ROOT %r = f32[4] add(%a, %b)\n}}"
        for n in range(1, count)
    ]
    return hlo(
        f"%r = f32[4] call(%x), to_apply=%f{count - 1}", before="\n\n".join([first, *others])
    )


@pytest.mark.long(keep=2)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (nested(200), nested(200, "sine")),
        (nested(100), nested(100, constant=2)),
        (wide(2000, "negate"), wide(2000, "sine")),
        (parallel(2500, "multiply"), parallel(2500, "add")),
        (parallel(2500, "multiply"), parallel(2500, "multiply", "s32")),
        (equal(1500, "multiply"), equal(1500, "add")),
        (equal(1500, "multiply"), equal(1499, "multiply")),
        (chain(40, "negate"), chain(40, "sine")),
    ],
    ids=["deep", "deep constant", "wide", "parallel", "dtype", "equal", "one less", "chain"],
)
def test_a_change_in_a_large_module_is_few_entries(one: str, other: str) -> None:
    """In acceptable time."""
    found = diff(one, other)
    assert found.severity == "semantic"
    assert len(found.changes) <= 3


def test_a_constant_is_carried_through_no_nested_loop() -> None:
    """At any depth."""
    loops = [one for one in settled(nested(50)).walk() if one.op == "while"]
    assert {len(one.operands) for one in loops} == {2}


def test_very_deep_loops_do_not_crash() -> None:
    """Python's stack does not limit them."""
    assert neutral(nested(500)) == neutral(nested(500))


def test_an_ordinary_loop_is_kept() -> None:
    """Next to the large ones."""
    assert the(settled(hlo(*LOOP, before=STEPS)), "while").op == "while"
