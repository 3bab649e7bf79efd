"""Loops, and what is carried."""

from __future__ import annotations

from tests.ir.jaxpr.documents import eqn, jaxpr

from .documents import F32, F32S, PRED, PREDS, S32, WEAK, WIDE, statements

COUNT = jaxpr(eqn("lt", [0, [S32, 3]], (PRED,)), inputs=(S32, F32), out=(2,))
STEP = jaxpr(
    eqn("add", [1, [S32, 1]], (S32,)), eqn("mul", [2, 0]), inputs=(F32, S32, F32), out=(3, 4)
)
PARAMS = {"cond_nconsts": 0, "body_nconsts": 1, "cond_jaxpr": {"jaxpr": 1}}


def test_a_while_loop() -> None:
    """What the body closes over goes by its own name."""
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


def test_a_loop_over_a_batch_goes_on_while_any_part_does() -> None:
    """As jax lowers what `vmap` makes of a loop: parts that have ended stay as they are."""
    going = jaxpr(eqn("lt", [0, [F32S, 3.0]], (PREDS,)), inputs=(F32, WIDE), out=(2,))
    step = jaxpr(eqn("neg", [1], (WIDE,)), inputs=(F32, WIDE), out=(0, 2))
    made = eqn(
        "while", [0, 1], (F32, WIDE), body_jaxpr={"jaxpr": 2}, **{**PARAMS, "body_nconsts": 0}
    )
    said = statements(made, inputs=(F32, WIDE), inner=(going, step), out=(2, 3))
    assert said[4:] == [
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


def test_a_scan() -> None:
    """Parts of which there are none are None; a part of one stands alone."""
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


def test_a_scan_without_items_says_how_long_it_is() -> None:
    """The counts of its parts may be told as `ft_in`."""
    body = jaxpr(eqn("add", [0, [WEAK, 1.0]], (WEAK,)), inputs=(WEAK,), out=(1,))
    made = eqn(
        "scan", [[WEAK, 0.0]], (WEAK,), jaxpr={"jaxpr": 1}, length=4, ft_in=["parts", 0, 1, 0],
        ft_out=["parts", 1, 0], reverse=False, unroll=1,
    )  # fmt: skip
    said = statements(made, inner=(body,))
    assert said[-2] == "scan, _ = lax.scan(step, 0.0, None, length=4)"
