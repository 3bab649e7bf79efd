"""The parser of the worker's JSON."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.ir.graph import IrSyntaxError, Opaque, Origin, Tensor
from conformance.ir.jaxpr import parse
from conformance.ir.jaxpr.parser import convert_dtype
from tests.ir.jaxpr.documents import (
    F32,
    S32,
    SAMPLES,
    VARYING,
    WEAK,
    document,
    eqn,
    instruction_of,
    jaxpr,
    module_of,
)

if TYPE_CHECKING:
    from pathlib import Path


ARRAY, SCALAR = Tensor("f32", (4,)), Tensor("s32")


def test_an_equation_is_an_instruction() -> None:
    """With its type in HLO's spelling, its operands and its origin."""
    module = module_of(eqn("sin", [0]), out=(1,))
    parameter, sine = module.entry.instructions
    assert (parameter.op, parameter.attributes) == ("parameter", {"index": 0})
    assert (sine.op, sine.type, sine.operands, sine.paths) == ("sin", ARRAY, (parameter,), ((),))
    assert sine.origin == Origin("while/body", "case.py", 7)
    assert module.entry.results == [(sine, ())]
    assert (module.kind, module.name) == ("jaxpr", "f")


@pytest.mark.parametrize(
    ("outputs", "type_", "paths"),
    [
        ((), (), []),
        ((F32,), ARRAY, [()]),
        ((F32, S32), (ARRAY, SCALAR), [(0,), (1,)]),
    ],
)
def test_several_results_are_read_by_their_number(
    outputs: tuple[int, ...], type_: Any, paths: list[Any]
) -> None:
    """A single result is the instruction itself."""
    module = module_of(eqn("f", [0], outputs), out=tuple(range(1, 1 + len(outputs))))
    made = module.entry.instructions[-1]
    assert made.type == type_
    assert module.entry.results == [(made, path) for path in paths]


def test_literals_and_constants_are_instructions() -> None:
    """Each use of a literal is an instruction; both have a value."""
    module = module_of(
        eqn("add", [1, [WEAK, 0.5]]), eqn("add", [2, [WEAK, 0.5]]), consts=([F32, "sha256:0"],)
    )
    constant, _, first, _, second, _ = module.entry.instructions
    assert (constant.op, constant.attributes) == ("constant", {"value": "sha256:0"})
    for literal in (first, second):
        assert literal.op == "literal"
        assert literal.attributes == {"value": 0.5, "result weak_type": (True,)}


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("n", 3, 3),
        ("n", [1, [True, None]], (1, (True, None))),
        ("new_dtype", {"dtype": "bfloat16"}, "bf16"),
        ("out_aval", {"aval": F32}, ARRAY),
        ("mesh", ["mesh", ["x", 2]], ("mesh", ("x", 2))),
    ],
)
def test_parameters_are_attributes(name: str, value: Any, expected: Any) -> None:
    """Lists become tuples; dtypes and avals are spelled as in HLO."""
    assert instruction_of("f", **{name: value}).attributes == {name: expected}


def test_an_unknown_parameter_is_kept_and_counted() -> None:
    """The worker marks parameters that it cannot encode."""
    module = module_of(eqn("f", [0], tree=[1, {"text": "Odd()"}]), eqn("f", [0], tree={"text": ""}))
    assert module.entry.instructions[1].attributes == {"tree": (1, Opaque("Odd()"))}
    assert module.not_understood == Counter({"attribute tree of f": 2})


def test_properties_of_avals_are_attributes_of_results() -> None:
    """Only if one is not empty; a memory space is part of the type."""
    both = instruction_of("f", (VARYING, WEAK))
    assert both.attributes == {
        "result weak_type": (False, True),
        "result vma": (("x",), ()),
    }
    avals = [["float32", [], {"space": "host"}]]
    module = parse(document(jaxpr(inputs=(0,)), avals=avals))
    assert module.entry.instructions[0].type == Tensor("f32", space="host")


INNER = jaxpr(out=(0,))


@pytest.mark.parametrize(
    ("params", "roles", "attributes"),
    [
        ({"body_jaxpr": {"jaxpr": 1}, "cond_jaxpr": {"jaxpr": 1}}, ["body", "condition"], {}),
        ({"call_jaxpr": {"jaxpr": 1}, "n": 1}, ["call_jaxpr"], {"n": 1}),
        ({"branches": [{"jaxpr": 1}, {"jaxpr": 1}]}, ["branch 0", "branch 1"], {}),
        (
            {"jaxprs": ["Linear", ["solve", {"jaxpr": 1}], ["vecmat", None]]},
            ["solve"],
            {"jaxprs": ("Linear", ("solve", "solve"), ("vecmat", None))},
        ),
    ],
)
def test_inner_jaxprs_are_bodies(
    params: dict[str, Any], roles: list[str], attributes: dict[str, Any]
) -> None:
    """Named by their parameter, branches by number, fields by name."""
    module = parse(document(jaxpr(eqn("f", [0], **params)), INNER))
    made = module.entry.instructions[-1]
    assert [role for role, _ in made.bodies] == roles
    assert made.attributes == attributes
    assert len(module.find_reachable()) == 2


def test_deeply_nested_jaxprs_are_read() -> None:
    """The document lists jaxprs separately, each once."""
    depth = 5000
    jaxprs = [jaxpr(eqn("jit", [0], jaxpr={"jaxpr": n + 1}), out=(1,)) for n in range(depth)]
    assert len(parse(document(*jaxprs, INNER)).find_reachable()) == depth + 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "jaxpr document: Input data was truncated"),
        ("[]", "jaxpr document: Expected `object`, got `array`"),
        ("[" * 10**5, "jaxpr document: "),
        (document(), "jaxpr document: Expected `array` of length >= 1 - at `$.jaxprs`"),
        (document(jaxpr(), form=2), "jaxpr document: Invalid enum value 2 - at `$.form`"),
        (document({**INNER, "odd": 1}), "unknown field `odd` - at `$.jaxprs[0]`"),
        (
            document(jaxpr(eqn("f", [0], (9,)))),
            "jaxpr aval: got number 9, expected a number below 4",
        ),
        (document(jaxpr(eqn("f", [1]))), "jaxpr variable: got number 1, expected a number below 1"),
        (document(jaxpr(["f", [], [], {}, 5])), "jaxpr source: got number 5"),
        (document(INNER, sources=[["", 3, 1]]), "jaxpr file: got number 3"),
        (document(jaxpr(eqn("f", [], jaxpr={"jaxpr": 1}))), "jaxpr jaxpr: got number 1"),
        (document(jaxpr(eqn("f", [], jaxpr={"jaxpr": "1"}))), "got jaxpr '1', expected a number"),
        (document(jaxpr(eqn("f", [], jaxpr={"jaxpr": 0}))), "calls itself"),
        (document(jaxpr(eqn("f", [], n={"odd": 1}))), "jaxpr n of f: got {'odd': 1}, expected"),
    ],
)
def test_a_malformed_document_is_an_error(text: str, message: str) -> None:
    """With the place, the text found and the text expected."""
    with pytest.raises(IrSyntaxError) as caught:
        parse(text)
    assert message in str(caught.value)


PARTS = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["jaxpr", "x", "sharding"]),
    lambda part: (
        st.lists(part, max_size=4)
        | st.dictionaries(st.sampled_from(["jaxpr", "aval", "text", "tensor", "sharding"]), part)
    ),
    max_leaves=8,
)


@given(PARTS, PARTS, PARTS)
def test_a_document_of_wrong_types_raises_only_syntax_errors(
    params: Any, inputs: Any, aval: Any
) -> None:
    """For any value in any place."""
    text = document(jaxpr(["f", inputs, [0], {"p": params}, 0]), INNER, avals=[["bool", []], aval])
    for given_ in (text, document(jaxpr(["f", [0], [0], {"p": params}, 0]), INNER)):
        with suppress(IrSyntaxError):
            parse(given_)


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.stem)
def test_the_sample_of_every_release_is_understood(file: Path) -> None:
    """Nothing is opaque in an ordinary program, and its lines are known."""
    module = parse(file.read_text())
    assert module.not_understood == Counter()
    assert {i.origin.file for i in module.entry.instructions} <= {"generate.py", ""}
    assert any(i.origin.line for i in module.entry.instructions)
    assert len(json.loads(file.read_text())["jaxprs"]) == len(module.find_reachable())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("bool", "pred"),
        ("int4", "s4"),
        ("uint32", "u32"),
        ("float32", "f32"),
        ("bfloat16", "bf16"),
        ("complex64", "c64"),
        ("float8_e4m3fn", "f8e4m3fn"),
        ("float4_e2m1fn", "f4e2m1fn"),
        ("ref<int32>", "ref<s32>"),
        ("float0", "float0"),
        ("key<fry>", "key<fry>"),
        ("token", "token"),
    ],
)
def test_dtypes_are_spelled_as_in_hlo(name: str, expected: str) -> None:
    """A name that HLO lacks is unchanged."""
    assert convert_dtype(name) == expected
