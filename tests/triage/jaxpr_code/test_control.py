"""Branches and calls."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.triage.jaxpr_code.code import NotSayableError
from tests.ir.jaxpr.documents import eqn, jaxpr

from .documents import F32, F32S, PRED, S32, code, statements

NEGATE = jaxpr(eqn("neg", [0]), inputs=(F32,), out=(1,))
SAME = jaxpr(inputs=(F32,), out=(0,))
TWO: dict[str, Any] = {"branches": [{"jaxpr": 1}, {"jaxpr": 2}]}
JIT: dict[str, Any] = {"jaxpr": {"jaxpr": 1}, "in_shardings": ["unspecified"], "ctx_mesh": ["mesh"]}


def last(*eqns: list[Any], **more: Any) -> str:
    """Return the last statement before the result, of branches that are `SAME` and `NEGATE`."""
    return statements(*eqns, inner=(SAME, NEGATE), **more)[-2]


def test_a_predicate_is_no_number() -> None:
    """What made an index of it is not said; the case of true comes first."""
    said = statements(
        eqn("convert_element_type", [1], (S32,), new_dtype={"dtype": "int32"}),
        eqn("cond", [2, 0], **TWO),
        inputs=(F32, PRED), inner=(SAME, NEGATE), out=(3,),
    )  # fmt: skip
    assert said == [
        "def otherwise(x_2):",
        "    return x_2",
        "def then(x_3):",
        "    neg = -x_3",
        "    return neg",
        "choice = lax.cond(y, then, otherwise, x)",
        "return choice",
    ]


def test_an_index_within_bounds() -> None:
    """`lax.switch` sees to that, so it is not said once more."""
    clamp = eqn("clamp", [[S32, 0], 1, [S32, 1]], (S32,))
    choice = eqn("cond", [2, 0], **TWO)
    said = last(clamp, choice, inputs=(F32, S32), out=(3,))
    assert said == "choice = lax.switch(y, [branch, branch_2], x)"


def test_a_platform() -> None:
    """The one without a name is for all others."""
    asked = eqn("platform_index", [], (S32,), platforms=[["cpu"], None])
    said = last(asked, eqn("cond", [1, 0], **TWO), inputs=(F32,))
    assert said == "choice = lax.platform_dependent(x, cpu=on_cpu, default=on_any)"


def test_a_function_of_a_package_stands_in_place() -> None:
    """All of it comes from the line that calls it."""
    made = eqn("jit", [0], name="_where", **JIT)
    assert statements(made, inner=(NEGATE,))[0] == "neg = -x"


def test_a_function_placed_elsewhere_does_not() -> None:
    """Its call says where it is computed."""
    context: dict[str, Any] = {"ctx compute_type": "device_host"}
    made = eqn("jit", [0], name="_where", **JIT, **context)
    assert statements(made, inner=(NEGATE,))[:2] == [
        'with compute_on("device_host"):',
        "    called = jax.jit(where)(x)",
    ]


def test_functions_of_the_users_are_functions() -> None:
    """Called twice, said once."""
    inner = {**NEGATE, "eqns": [[*NEGATE["eqns"][0][:4], 1]]}
    calls = (eqn("jit", [0], name="inner", **JIT), eqn("jit", [1], name="inner", **JIT))
    entry = jaxpr(*calls, inputs=(F32,), out=(2,))
    made = code(entry, inner, sources=[["", 0, 7], ["", 0, 3]])
    assert made.functions == (
        "def inner(x_2):\n    neg = -x_2\n    return neg",
        (
            "def f(x):\n    called = jax.jit(inner)(x)\n    called_2 = jax.jit(inner)(called)\n"
            "    return called_2"
        ),
    )


def test_what_a_jit_says_is_said() -> None:
    """Even of a function that would else stand in place."""
    made = eqn("pjit", [0], name="<lambda>", **JIT, donated_invars=[True], keep_unused=True)
    said = last(made, inputs=(F32,), out=(1,))
    assert said == "called = jax.jit(anonymous, donate_argnums=(0,), keep_unused=True)(x)"


def test_rules_of_differentiation_are_left_out() -> None:
    """They have been used, where they were to be."""
    made = eqn("custom_jvp_call", [0], call_jaxpr={"jaxpr": 1}, num_consts=0, symbolic_zeros=False)
    assert statements(made, inner=(NEGATE,))[0] == "neg = -x"


def test_what_is_computed_again() -> None:
    """With its policy, where that is one of jax's own."""
    more: dict[str, Any] = {"jaxpr": {"jaxpr": 2}, "prevent_cse": True, "differentiated": True}
    said = last(eqn("checkpoint", [0], policy="dots_saveable", **more))
    assert said == ("kept = jax.checkpoint(block, policy=jax.checkpoint_policies.dots_saveable)(x)")
    with pytest.raises(NotSayableError, match="checkpoint, parameter policy"):
        last(eqn("checkpoint", [0], policy="mine", **more))


def test_a_place_to_compute() -> None:
    """A context where the equation bears it, a function where it has a jaxpr."""
    context: dict[str, Any] = {"ctx compute_type": "device_host"}
    said = statements(
        eqn("sin", [0], **context),
        eqn("cos", [2], **context),
        eqn("neg", [3]),
        out=(4,),
    )
    assert said == [
        'with compute_on("device_host"):',
        "    sin = jnp.sin(x)",
        "    cos = jnp.cos(sin)",
        "neg = -cos",
        "return neg",
    ]
    made = eqn(
        "compute_on", [0], compute_type="device_host", jaxpr={"jaxpr": 2},
        out_memory_spaces=["Device"],
    )  # fmt: skip
    assert last(made) == (
        'compute_on_2 = compute_on(on_host, compute_type="device_host", '
        "out_memory_spaces=jax.memory.Space.Device)(x)"
    )


def test_a_reduction_of_ones_own() -> None:
    """What becomes of two elements is a function."""
    inner = jaxpr(eqn("mul", [0, 1], (F32S,)), inputs=(F32S, F32S), out=(2,))
    made = eqn("reduce", [0, [F32S, 1.0]], (F32S,), jaxpr={"jaxpr": 1}, dimensions=[0])
    said = statements(made, inner=(inner,))
    assert said[0] == "def combine(a, b):"
    assert said[-2] == "reduce = lax.reduce(x, np.float32(1.0), combine, (0,))"
