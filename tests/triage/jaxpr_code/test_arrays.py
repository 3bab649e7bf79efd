"""Operators and functions on whole arrays."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ir.jaxpr.documents import eqn

from .documents import F16, F32, F32S, PRED, PREDS, S32, S32S, U32, WEAK, WIDE, statements


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (eqn("add", [0, 1]), "add = x + y"),
        (eqn("add_any", [0, 1]), "add = x + y"),
        (eqn("mul", [0, [F32S, 0.10000000149011612]], out_dtype=None), "product = x * 0.1"),
        (eqn("mul", [[F32S, 2.0], 0]), "product = 2.0 * x"),
        (eqn("mul", [0, [WEAK, 2.0]]), "product = lax.mul(x, 2.0)"),
        (eqn("div", [0, 1]), "div = x / y"),
        (eqn("lt", [0, [F32S, "inf"]], (PREDS,)), "less = x < jnp.inf"),
        (eqn("max", [0, [F32S, "-inf"]]), "larger = lax.max(x, np.float32(-np.inf))"),
        (eqn("neg", [0]), "neg = -x"),
        (eqn("sin", [0], accuracy=None), "sin = jnp.sin(x)"),
        (eqn("rsqrt", [0]), "rsqrt = lax.rsqrt(x)"),
        (eqn("integer_pow", [0], y=3), "power = lax.integer_pow(x, 3)"),
        (
            eqn("convert_element_type", [0], (F16,), new_dtype={"dtype": "float16"}),
            "cast = x.astype(jnp.float16)",
        ),
        (
            eqn("broadcast_in_dim", [[F32S, 0.0]], shape=[4], broadcast_dimensions=[]),
            "wide = jnp.full((4,), 0.0, jnp.float32)",
        ),
        (
            eqn("broadcast_in_dim", [0], (WIDE,), shape=[4, 2], broadcast_dimensions=[0]),
            "wide = lax.broadcast_in_dim(x, (4, 2), (0,))",
        ),
        (
            eqn("slice", [0], start_indices=[0], limit_indices=[2], strides=None),
            "part = lax.slice(x, (0,), (2,))",
        ),
        (
            eqn("iota", [], (S32S,), shape=[4], dimension=0, dtype={"dtype": "int32"}),
            "iota = lax.iota(jnp.int32, 4)",
        ),
        (eqn("concatenate", [0, 1], dimension=0), "joined = lax.concatenate([x, y], dimension=0)"),
    ],
)
def test_statements(made: list[Any], said: str) -> None:
    """Each equation is one, in the words of jax's users."""
    assert statements(made) == [said, f"return {said.partition(' = ')[0]}"]


@pytest.mark.parametrize(
    ("primitive", "kinds", "said"),
    [
        ("div", (S32, S32), "lax.div(x, y)"),
        ("lt", (PRED, PRED), "lax.lt(x, y)"),
        ("and", (PRED, PRED), "x & y"),
        ("mul", (WEAK, F32S), "lax.mul(x, y)"),
    ],
)
def test_an_operator_that_does_more_is_a_function(
    primitive: str, kinds: tuple[int, int], said: str
) -> None:
    """`/` of whole numbers makes floats of them, and truth values are no numbers."""
    made, _ = statements(eqn(primitive, [0, 1], (kinds[0],)), inputs=kinds)
    assert made.partition(" = ")[2] == said


def test_numbers_beyond_pythons_weak_ones_are_typed() -> None:
    """Jax takes a whole number of Python's for an i32 at first."""
    made, _ = statements(eqn("add", [0, [U32, 4000000000]], (U32,)), inputs=(U32,), out=(1,))
    assert made == "add = lax.add(x, np.uint32(4000000000))"


def test_a_conversion_of_a_number_is_staged() -> None:
    """With numbers, jax would convert at once."""
    made = eqn("convert_element_type", [[WEAK, 4.0]], (F32S,), new_dtype={"dtype": "float32"})
    assert statements(made)[0] == "cast = jax.jit(lambda: 4.0)().astype(jnp.float32)"


def test_a_choice_is_told_in_the_order_of_select() -> None:
    """The case of true comes first."""
    made = eqn("select_n", [2, 0, 1])
    assert statements(made, inputs=(F32, F32, PREDS), out=(3,))[0] == "chosen = lax.select(z, y, x)"
