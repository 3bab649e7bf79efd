"""The normalisation of spellings over releases."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.ir.jaxpr import normalise_spelling, parse, spelling
from tests.ir.jaxpr.documents import F32, SAMPLES, VARYING, document, eqn, instruction_of, jaxpr
from tests.ir.jaxpr.writing import print_module
from tests.ir.texts import fingerprint_of

MANUAL, EXPLICIT = ["mesh", ["x", 4, "Manual"]], ["mesh", ["x", 4, "Explicit"]]


def test_a_program_has_one_graph_on_every_release() -> None:
    """Seventeen spellings from 0.4.30 to 0.12.0.1; their readable texts are equal, too."""
    raw, normal, texts = set(), set(), set()
    for file in SAMPLES:
        module = parse(file.read_text())
        raw.add(fingerprint_of(module))
        normalise_spelling(module)
        normal.add(fingerprint_of(module))
        texts.add(print_module(module))
    assert (len(raw), len(normal), len(texts)) == (len(SAMPLES), 1, 1)


def test_normalising_a_jaxpr_twice_changes_nothing() -> None:
    """The newest names and values are unchanged."""
    module = parse(SAMPLES[0].read_text())
    normalise_spelling(module)
    once = print_module(module)
    normalise_spelling(module)
    assert print_module(module) == once


def rule(name: str, primitive: str, /, outputs: tuple[int, ...] = (F32,), **params: Any) -> Any:
    """Apply one rule to an instruction."""
    instruction = instruction_of(primitive, outputs, **params)
    getattr(spelling, name)(instruction)
    return instruction


@pytest.mark.parametrize(
    ("before", "params", "after"),
    [
        ("psum2", {}, "psum"),
        ("psum_invariant", {}, "psum"),
        ("pjit", {}, "jit"),
        ("pbroadcast", {"axes": ["x"]}, "pvary"),
        ("pbroadcast", {"axis_name": "x", "source": 0}, "pbroadcast"),
        ("sin", {}, "sin"),
    ],
)
def test_primitives_get_their_newest_names(before: str, params: Any, after: str) -> None:
    """Except a name that another primitive has."""
    assert rule("rename_primitive", before, **params).op == after


def test_parameters_get_their_newest_names() -> None:
    """Also those that became bodies."""
    assert rule("rename_parameters", "shard_map", check_rep=True).attributes == {"check_vma": True}
    call = eqn("custom_vjp_call", [0], fun_jaxpr={"jaxpr": 1})
    module = parse(document(jaxpr(call), jaxpr(out=(0,))))
    normalise_spelling(module)
    assert [role for role, _ in module.entry.instructions[-1].bodies] == ["call_jaxpr"]


@pytest.mark.parametrize(
    ("primitive", "params", "axes"),
    [
        ("ppermute", {"axis_name": "x"}, ("x",)),
        ("ppermute", {"axis_name": ["y", "x"]}, ("y", "x")),
        ("psum", {"axes": ["y", "x"]}, ("x", "y")),
        ("psum", {"axes": [0, "x"]}, (0, "x")),
    ],
)
def test_axes_become_a_tuple(primitive: str, params: Any, axes: tuple[Any, ...]) -> None:
    """Sorted for a reduction, in the order of the program for a movement of data."""
    assert rule("normalise_axes", primitive, **params).attributes == {"axes": axes}


def test_axes_of_reductions_over_dimensions_are_unchanged() -> None:
    """Their order is that of the program."""
    made = rule("normalise_axes", "reduce_sum", axes=[1, 0])
    assert made.attributes == {"axes": (1, 0)}


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ([[[0, ["x"]]], []], ((("x",),), ())),
        ([[[1, ["x", "y"]]]], (((), ("x", "y")),)),
        ([[["x"], [], []], [[]]], ((("x",),), ())),
    ],
)
def test_specs_become_axes_by_dimension(specs: Any, expected: Any) -> None:
    """Up to 0.6.0 they are names by dimension; trailing uncut dimensions are dropped."""
    assert rule("normalise_specs", "shard_map", in_specs=specs).attributes["in_specs"] == expected


def test_auto_becomes_the_other_axes_as_manual() -> None:
    """Up to 0.6.0."""
    made = rule("normalise_manual_axes", "shard_map", mesh=["mesh", ["x", 2], ["y", 2]], auto=["x"])
    assert made.attributes["newly_manual_axes"] == ("y",)
    assert "auto" not in made.attributes


def test_flat_trees_of_a_scan_become_counts() -> None:
    """From 0.11.0 on."""
    made = rule("normalise_scan_counts", "scan", ft_in=["parts", 1, 2, 0], ft_out=["parts", 2, 0])
    assert made.attributes == {"num_consts": 1, "num_carry": 2}


@pytest.mark.parametrize(
    ("primitive", "params", "left"),
    [
        ("mul", {"out_dtype": None, "n": 0}, {"n": 0}),
        ("jit", {"keep_unused": False, "in_layouts": [None, None]}, {}),
        ("jit", {"keep_unused": True}, {"keep_unused": True}),
        ("jit", {"donated_invars": [False, True]}, {"donated_invars": (False, True)}),
        ("jit", {"in_shardings": ["unspecified"], "ctx_mesh": ["mesh"]}, {}),
        ("scan", {"_split_transpose": False}, {}),
        ("scan", {"_split_transpose": 0}, {"_split_transpose": 0}),
        ("sort", {"keep_unused": False}, {"keep_unused": False}),
    ],
)
def test_parameters_at_neutral_values_are_dropped(primitive: str, params: Any, left: Any) -> None:
    """Some releases lack the parameter, with the same meaning."""
    assert rule("drop_neutral", primitive, **params).attributes == left


def test_a_constant_of_unknown_value_keeps_none() -> None:
    """None is not a default there."""
    module = parse(document(jaxpr(consts=([F32, None],))))
    normalise_spelling(module)
    assert module.entry.instructions[0].attributes == {"value": None}


@pytest.mark.parametrize(
    ("mesh", "spec", "kept"),
    [(MANUAL, [[]], False), (MANUAL, [["x"]], True), (EXPLICIT, [[]], True)],
)
def test_a_trivial_sharding_is_dropped(mesh: Any, spec: Any, kept: bool) -> None:
    """Unless an axis is explicit, because the sharding is then part of the type."""
    made = rule("drop_trivial_shardings", "iota", sharding=["sharding", mesh, spec, None])
    assert bool(made.attributes) is kept


def test_bookkeeping_variance_and_axis_effects_are_dropped() -> None:
    """Private state of jax, or derived from the equations."""
    assert rule("drop_bookkeeping", "custom_jvp_call", jvp_jaxpr_fun="f").attributes == {}
    assert rule("drop_variance", "psum", (VARYING,)).attributes == {}
    some: dict[str, Any] = {"ctx effects": ["IOEffect", "NamedAxisEffect"]}
    none: dict[str, Any] = {"ctx effects": ["NamedAxisEffect"]}
    assert rule("drop_axis_effects", "f", **some).attributes == {"ctx effects": ("IOEffect",)}
    assert rule("drop_axis_effects", "f", **none).attributes == {}


def test_the_default_platform_becomes_none() -> None:
    """Up to 0.6.0 a flag."""
    made = rule("normalise_platforms", "platform_index", platforms=[["cpu"]], has_default=True)
    assert made.attributes == {"platforms": (("cpu",), None)}
    newer = rule("normalise_platforms", "platform_index", platforms=[["cpu"], None])
    assert newer.attributes == made.attributes


def test_the_last_axis_of_top_k_is_dropped() -> None:
    """Other axes are kept."""
    assert rule("drop_last_axis", "top_k", (F32, F32), axis=0, k=2).attributes == {"k": 2}
    other = rule("drop_last_axis", "top_k", (F32, F32), axis=1)
    assert other.attributes == {"axis": 1}


def test_a_reduction_of_several_operands_is_split() -> None:
    """As from 0.8.2 on; readers of its results read the pieces."""
    several = eqn("psum", [0, 1], (F32, VARYING), axes=["x"])
    one = [eqn("psum", [0], (F32,), axes=["x"]), eqn("psum", [1], (VARYING,), axes=["x"])]
    programs = [
        jaxpr(*eqns, eqn("add", [3, 2]), inputs=(F32, F32), out=(2, 4)) for eqns in ([several], one)
    ]
    modules = [parse(document(program)) for program in programs]
    for module in modules:
        normalise_spelling(module)
    assert fingerprint_of(modules[0]) == fingerprint_of(modules[1])
    assert print_module(modules[0]) == print_module(modules[1])
