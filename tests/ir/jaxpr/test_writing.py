"""Round trips of jaxprs through JSON, and their readable text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.ir.graph import Opaque, Tensor
from conformance.ir.jaxpr import normalise_spelling, parse
from tests.ir.jaxpr.documents import AVALS, S32, SAMPLES, WEAK, document, eqn, jaxpr, module_of
from tests.ir.jaxpr.writing import dump, print_module
from tests.ir.texts import fingerprint_of

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.ir.graph import Computation, Module

ATTRIBUTES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
    | st.builds(Opaque, st.text(max_size=3))
    | st.builds(Tensor, st.just("f32"), st.tuples(st.integers(0, 3)), st.just(""), st.just("5")),
    lambda part: st.lists(part, max_size=3).map(tuple),
    max_leaves=6,
)


@st.composite
def jaxprs(draw: st.DrawFn, number: int, count: int) -> dict[str, Any]:
    """Draw a jaxpr that calls only those after it."""
    inputs = draw(st.lists(st.integers(0, len(AVALS) - 1), min_size=1, max_size=3))
    made, variables = [], len(inputs)
    for _ in range(draw(st.integers(0, 4))):
        atom = st.integers(0, variables - 1) | st.just([WEAK, 0.5])
        outputs = draw(st.lists(st.integers(0, len(AVALS) - 1), max_size=3))
        inner = [{"jaxpr": n} for n in draw(st.sets(st.integers(number + 1, count))) if n < count]
        params = {"n": draw(st.integers(0, 2)), **({"branches": inner} if inner else {})}
        made.append(["f", draw(st.lists(atom, max_size=3)), outputs, params, 0])
        variables += len(outputs)
    out = draw(st.lists(st.integers(0, variables - 1), max_size=3))
    return jaxpr(*made, inputs=tuple(inputs), consts=([S32, 3],), out=tuple(out))


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Draw a whole program."""
    count = draw(st.integers(1, 4))
    return document(*(draw(jaxprs(number, count)) for number in range(count)))


def described(module: Module) -> list[Any]:
    """Return all that a module holds, as plain data that compares by value."""
    found = module.find_reachable()
    names = {id(computation): number for number, computation in enumerate(found)}
    return [
        module.name,
        module.attributes,
        module.not_understood,
        *(_described(computation, names) for computation in found),
    ]


def _described(computation: Computation, names: dict[int, int]) -> list[Any]:
    places = {instruction: n for n, instruction in enumerate(computation.instructions)}
    return [
        computation.name,
        computation.attributes,
        [(places[instruction], path) for instruction, path in computation.results],
        *(
            [
                i.name,
                i.op,
                i.type,
                [places[operand] for operand in i.operands],
                i.paths,
                sorted(i.attributes.items()),
                [(role, names[id(inner)]) for role, inner in i.bodies],
                i.origin,
            ]
            for i in computation.instructions
        ),
    ]


@given(documents())
def test_a_dump_reads_back_as_the_same_graph(text: str) -> None:
    """Names, attributes, bodies shared by two equations, origins: all of it."""
    module = parse(text)
    assert described(parse(dump(module))) == described(module)


@given(ATTRIBUTES)
def test_every_attribute_survives(value: Any) -> None:
    """Also types, and texts that are not understood."""
    module = module_of(eqn("f", [0]))
    module.entry.instructions[-1].attributes["value"] = value
    again = parse(dump(module))
    assert repr(again.entry.instructions[-1].attributes["value"]) == repr(value)


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.stem)
def test_samples_read_back_before_and_after_normalising(file: Path) -> None:
    """Real programs, in the spelling of each release and in the newest."""
    module = parse(file.read_text())
    assert described(parse(dump(module))) == described(module)
    normalise_spelling(module)
    assert fingerprint_of(parse(dump(module))) == fingerprint_of(module)


def test_the_text_of_a_jaxpr_is_readable() -> None:
    """An equation a line, literals where they are used, inner jaxprs below."""
    body = jaxpr(eqn("mul", [0, [WEAK, 2.0]]), out=(1,))
    loop = eqn("while", [0, [S32, 0]], (0, S32), body_jaxpr={"jaxpr": 1}, cond_nconsts=0)
    assert print_module(parse(document(jaxpr(loop, out=(1, 2)), body))) == (
        "f:\n"
        "  v0: f32[4] = parameter() index=0\n"
        "  v1: (f32[4], s32[]) = while(v0, 0:s32[]) cond_nconsts=0 body=@f.v1.body\n"
        "  return v1.0, v1.1\n"
        "\n"
        "f.v1.body:\n"
        "  v0: f32[4] = parameter() index=0\n"
        "  v1: f32[4] = mul(v0, 2.0:f32[])\n"
        "  return v1\n"
    )


def test_the_text_spells_every_attribute() -> None:
    """Names bare, other texts quoted, unknown ones in angle brackets."""
    module = module_of(eqn("f", [0], (), a="sum", b="a b", c=[1, None], d={"text": "Odd()"}))
    assert 'v1: () = f(v0) a=sum b="a b" c=(1, None) d=<Odd()>' in print_module(module)
