"""Branches, calls and loops."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.triage.jaxpr_code.program import UnsupportedJaxprError
from tests.ir.jaxpr.documents import eqn, jaxpr

from .documents import F32, F32S, PRED, PREDS, S32, WEAK, WIDE, code, statements

NEGATE = jaxpr(eqn("neg", [0]), inputs=(F32,), out=(1,))
SAME = jaxpr(inputs=(F32,), out=(0,))
TWO: dict[str, Any] = {"branches": [{"jaxpr": 1}, {"jaxpr": 2}]}
JIT: dict[str, Any] = {"jaxpr": {"jaxpr": 1}, "in_shardings": ["unspecified"], "ctx_mesh": ["mesh"]}


def last(*eqns: list[Any], **more: Any) -> str:
    """Return the last statement before the result, of branches that are `SAME` and `NEGATE`."""
    return statements(*eqns, inner=(SAME, NEGATE), **more)[-2]


def test_predicate_becomes_cond() -> None:
    """Its conversion to an index is left out; the branch for true comes first."""
    lines = statements(
        eqn("convert_element_type", [1], (S32,), new_dtype={"dtype": "int32"}),
        eqn("cond", [2, 0], **TWO),
        inputs=(F32, PRED), inner=(SAME, NEGATE), out=(3,),
    )  # fmt: skip
    assert lines == [
        "def otherwise(x_2):",
        "    return x_2",
        "def then(x_3):",
        "    neg = -x_3",
        "    return neg",
        "choice = lax.cond(y, then, otherwise, x)",
        "return choice",
    ]


def test_clamp_of_a_switch_is_left_out() -> None:
    """`lax.switch` clamps its index itself."""
    clamp = eqn("clamp", [[S32, 0], 1, [S32, 1]], (S32,))
    choice = eqn("cond", [2, 0], **TWO)
    lines = last(clamp, choice, inputs=(F32, S32), out=(3,))
    assert lines == "choice = lax.switch(y, [branch, branch_2], x)"


def test_platform_index_becomes_platform_dependent() -> None:
    """The branch without a name is the default."""
    asked = eqn("platform_index", [], (S32,), platforms=[["cpu"], None])
    lines = last(asked, eqn("cond", [1, 0], **TWO), inputs=(F32,))
    assert lines == "choice = lax.platform_dependent(x, cpu=on_cpu, default=on_any)"


def test_function_of_a_package_is_inlined() -> None:
    """All its equations are at the line that calls it."""
    made = eqn("jit", [0], name="_where", **JIT)
    assert statements(made, inner=(NEGATE,))[0] == "neg = -x"


def test_function_in_another_context_is_not_inlined() -> None:
    """Its call is within the context."""
    context: dict[str, Any] = {"ctx compute_type": "device_host"}
    made = eqn("jit", [0], name="_where", **JIT, **context)
    assert statements(made, inner=(NEGATE,))[:2] == [
        'with compute_on("device_host"):',
        "    called = jax.jit(where)(x)",
    ]


def test_functions_of_the_user_are_written_once() -> None:
    """Also if they are called twice."""
    inner = {**NEGATE, "eqns": [[*NEGATE["eqns"][0][:4], 1]]}
    calls = (eqn("jit", [0], name="inner", **JIT), eqn("jit", [1], name="inner", **JIT))
    entry = jaxpr(*calls, inputs=(F32,), out=(2,))
    made = code(entry, inner, sources=[["", 0, 7], ["", 0, 3]])
    assert made.statements == (
        "def inner(x_2):\n    neg = -x_2\n    return neg",
        (
            "def f(x):\n    called = jax.jit(inner)(x)\n    called_2 = jax.jit(inner)(called)\n"
            "    return called_2"
        ),
    )


def test_options_of_jit_are_written() -> None:
    """A function with options is not inlined."""
    made = eqn("pjit", [0], name="<lambda>", **JIT, donated_invars=[True], keep_unused=True)
    lines = last(made, inputs=(F32,), out=(1,))
    assert lines == "called = jax.jit(anonymous, donate_argnums=(0,), keep_unused=True)(x)"


def test_derivative_rules_are_left_out() -> None:
    """They were applied while the program was traced."""
    made = eqn("custom_jvp_call", [0], call_jaxpr={"jaxpr": 1}, num_consts=0, symbolic_zeros=False)
    assert statements(made, inner=(NEGATE,))[0] == "neg = -x"


def test_checkpoint_has_its_policy() -> None:
    """If it is one of the policies of jax."""
    more: dict[str, Any] = {"jaxpr": {"jaxpr": 2}, "prevent_cse": True, "differentiated": True}
    lines = last(eqn("checkpoint", [0], policy="dots_saveable", **more))
    assert lines == (
        "kept = jax.checkpoint(block, policy=jax.checkpoint_policies.dots_saveable)(x)"
    )
    with pytest.raises(UnsupportedJaxprError, match="checkpoint, parameter policy"):
        last(eqn("checkpoint", [0], policy="mine", **more))


def test_compute_type_is_a_context_or_a_function() -> None:
    """A context of an equation, a function of a jaxpr."""
    context: dict[str, Any] = {"ctx compute_type": "device_host"}
    lines = statements(
        eqn("sin", [0], **context),
        eqn("cos", [2], **context),
        eqn("neg", [3]),
        out=(4,),
    )
    assert lines == [
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


def test_custom_reduction_has_a_function() -> None:
    """It combines two elements."""
    inner = jaxpr(eqn("mul", [0, 1], (F32S,)), inputs=(F32S, F32S), out=(2,))
    made = eqn("reduce", [0, [F32S, 1.0]], (F32S,), jaxpr={"jaxpr": 1}, dimensions=[0])
    lines = statements(made, inner=(inner,))
    assert lines[0] == "def combine(a, b):"
    assert lines[-2] == "reduce = lax.reduce(x, np.float32(1.0), combine, (0,))"


COUNT = jaxpr(eqn("lt", [0, [S32, 3]], (PRED,)), inputs=(S32, F32), out=(2,))
STEP = jaxpr(
    eqn("add", [1, [S32, 1]], (S32,)), eqn("mul", [2, 0]), inputs=(F32, S32, F32), out=(3, 4)
)
PARAMS = {"cond_nconsts": 0, "body_nconsts": 1, "cond_jaxpr": {"jaxpr": 1}}


def test_while_loop_closes_over_constants() -> None:
    """They are no part of the carry."""
    made = eqn("while", [1, [S32, 0], 0], (S32, F32), body_jaxpr={"jaxpr": 2}, **PARAMS)
    assert statements(made, inner=(COUNT, STEP), out=(3,)) == [
        "def go_on(carry):",
        "    i, x_2 = carry",
        "    less = i < 3",
        "    return less",
        "def step(carry_2):",
        "    i_2, x_3 = carry_2",
        "    add = i_2 + 1",
        "    product = x_3 * y",
        "    return (add, product)",
        "_, loop = lax.while_loop(go_on, step, (np.int32(0), x))",
        "return loop",
    ]


def test_batched_while_loop_masks_finished_examples() -> None:
    """As jax lowers a batched loop."""
    going = jaxpr(eqn("lt", [0, [F32S, 3.0]], (PREDS,)), inputs=(F32, WIDE), out=(2,))
    step = jaxpr(eqn("neg", [1], (WIDE,)), inputs=(F32, WIDE), out=(0, 2))
    made = eqn(
        "while", [0, 1], (F32, WIDE), body_jaxpr={"jaxpr": 2}, **{**PARAMS, "body_nconsts": 0}
    )
    lines = statements(made, inputs=(F32, WIDE), inner=(going, step), out=(2, 3))
    assert lines[4:] == [
        "def go_on(carry_2):",
        "    return lax.reduce_or(going_on(carry_2), (0,))",
        "def step(carry_3):",
        "    x_3, y_3 = carry_3",
        "    going = going_on((x_3, y_3))",
        "    neg = -y_3",
        "    kept = lax.select(going, x_3, x_3)",
        "    kept_2 = lax.select(lax.broadcast_in_dim(going, (4, 2), (0,)), neg, y_3)",
        "    return (kept, kept_2)",
        "loop, loop_2 = lax.while_loop(go_on, step, (x, y))",
        "return (loop, loop_2)",
    ]


def test_scan_without_a_part_has_none() -> None:
    """A part of one value is not a tuple."""
    body = jaxpr(eqn("mul", [1, 2], (F32S,)), inputs=(F32, F32S, F32S), out=(3, 1))
    made = eqn(
        "scan", [1, [F32S, 1.0], 0], (F32S, F32), jaxpr={"jaxpr": 1}, length=4, num_consts=1,
        num_carry=1, reverse=True, unroll=1, linear=[False] * 3, _split_transpose=False,
    )  # fmt: skip
    assert statements(made, inner=(body,), out=(3,)) == [
        "def step(c, x_2):",
        "    product = c * x_2",
        "    return product, c",
        "_, scan = lax.scan(step, np.float32(1.0), x, reverse=True)",
        "return scan",
    ]


def test_scan_without_items_has_a_length() -> None:
    """The counts of its parts may be in `ft_in`."""
    body = jaxpr(eqn("add", [0, [WEAK, 1.0]], (WEAK,)), inputs=(WEAK,), out=(1,))
    made = eqn(
        "scan", [[WEAK, 0.0]], (WEAK,), jaxpr={"jaxpr": 1}, length=4, ft_in=["parts", 0, 1, 0],
        ft_out=["parts", 1, 0], reverse=False, unroll=1,
    )  # fmt: skip
    lines = statements(made, inner=(body,))
    assert lines[-2] == "scan, _ = lax.scan(step, 0.0, None, length=4)"
