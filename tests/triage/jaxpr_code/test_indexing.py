"""Parts of arrays, and random numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ir.jaxpr.documents import eqn, jaxpr

from .documents import F32, KEY, NEWEST, S32, S32S, U32, statements

NUMBERS = ["offset_dims", []], ["collapsed_slice_dims", [0]], ["start_index_map", [0]]
BATCHING = ["operand_batching_dims", []], ["start_indices_batching_dims", []]


def test_gathering() -> None:
    """With its dimension numbers, where they say something."""
    made = eqn(
        "gather", [0, 1], dimension_numbers=["GatherDimensionNumbers", *NUMBERS, *BATCHING],
        fill_value=None, indices_are_sorted=True, mode="CLIP", slice_sizes=[1],
        unique_indices=False,
    )  # fmt: skip
    assert statements(made, inputs=(F32, S32S))[0] == (
        "gather = lax.gather(x, y, dimension_numbers=lax.GatherDimensionNumbers(offset_dims=(), "
        "collapsed_slice_dims=(0,), start_index_map=(0,)), slice_sizes=(1,), "
        "indices_are_sorted=True, mode=lax.GatherScatterMode.CLIP)"
    )


def test_scattering() -> None:
    """What is done with two elements follows from its name."""
    made = eqn(
        "scatter-add", [0, 1, 0], dimension_numbers=["ScatterDimensionNumbers",
        ["update_window_dims", []]], indices_are_sorted=False, mode="FILL_OR_DROP",
        unique_indices=True, update_consts=[], update_jaxpr={"jaxpr": 1},
    )  # fmt: skip
    said, _ = statements(made, inputs=(F32, S32S), inner=(jaxpr(inputs=(F32,), out=(0,)),))
    assert said == (
        "scatter_add = lax.scatter_add(x, y, x, dimension_numbers=lax.ScatterDimensionNumbers("
        "update_window_dims=()), unique_indices=True, mode=lax.GatherScatterMode.FILL_OR_DROP)"
    )


@pytest.mark.parametrize(
    ("release", "said"),
    [
        (NEWEST, "lax.dynamic_slice(x, (y,), (2,), allow_negative_indices=False)"),
        ("0.5.2", "lax.dynamic_slice(x, (lax.max(y, np.int32(0)),), (2,))"),
    ],
)
def test_a_start_is_not_counted_from_the_end(release: str, said: str) -> None:
    """The primitive takes what is below 0 for 0."""
    made = eqn("dynamic_slice", [0, 1], slice_sizes=[2])
    written, _ = statements(made, inputs=(F32, S32), release=release)
    assert written == f"part = {said}"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (eqn("random_seed", [1], (KEY,), impl="fry"), 'jax.random.key(y, impl="threefry2x32")'),
        (eqn("random_bits", [0], shape=[4], bit_width=32), "jax.random.bits(x, (4,), jnp.uint32)"),
        (eqn("random_fold_in", [0, 1], (KEY,)), "jax.random.fold_in(x, y)"),
        (eqn("random_unwrap", [0]), "jax.random.key_data(x)"),
    ],
)
def test_random_numbers(made: list[Any], said: str) -> None:
    """By the functions for typed keys."""
    assert statements(made, inputs=(KEY, U32))[0].partition(" = ")[2] == said
