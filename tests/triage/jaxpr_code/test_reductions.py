"""Reductions, products, sorting."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ir.jaxpr.documents import eqn

from .documents import F16, F32, F32S, NEWEST, S32S, statements


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (eqn("reduce_sum", [0], (F32S,), axes=[0], out_sharding=None), "jnp.sum(x)"),
        (eqn("reduce_max", [0], (F32S,), axes=[0]), "jnp.max(x)"),
        (eqn("reduce_sum", [0], (F32,), axes=[]), "lax.reduce_sum(x, ())"),
        (eqn("argmax", [0], axes=[0], index_dtype={"dtype": "int8"}), "lax.argmax(x, 0, jnp.int8)"),
        (eqn("cumsum", [0], axis=0, reverse=True), "lax.cumsum(x, axis=0, reverse=True)"),
        (
            eqn("sort", [0], dimension=0, is_stable=True, num_keys=1),
            "lax.sort(x, dimension=0, is_stable=True, num_keys=1)",
        ),
        (
            eqn("dot_general", [0, 1], (F32S,), dimension_numbers=[[[0], [0]], [[], []]],
                precision=["HIGHEST", "HIGHEST"], preferred_element_type={"dtype": "float32"}),
            ("lax.dot_general(x, y, (((0,), (0,)), ((), ())), precision=(lax.Precision.HIGHEST, "
            "lax.Precision.HIGHEST), preferred_element_type=jnp.float32)"),
        ),
        (eqn("fft", [0], fft_type=0, fft_lengths=[4]), 'lax.fft(x, "FFT", (4,))'),
    ],
)  # fmt: skip
def test_statements(made: list[Any], said: str) -> None:
    """Each is one call."""
    assert statements(made)[0].partition(" = ")[2] == said


@pytest.mark.parametrize(
    ("release", "said"),
    [
        (NEWEST, "lax.reduce_max(x, (0,))"),
        ("0.4.38", "lax.reduce(x, np.array(np.iinfo(np.int32).min, jnp.int32), lax.max, (0,))"),
    ],
)
def test_whole_numbers_are_reduced_as_they_are(release: str, said: str) -> None:
    """Not by `jnp`, which may widen; before there was a name for it by its parts."""
    made = eqn("reduce_max", [0], axes=[0])
    written, _ = statements(made, inputs=(S32S,), out=(1,), release=release)
    assert written.partition(" = ")[2] == said


def test_narrow_floats_are_reduced_as_they_are() -> None:
    """`jnp.sum` would widen them."""
    made = eqn("reduce_sum", [0], (F16,), axes=[0])
    assert statements(made, inputs=(F16,), out=(1,))[0] == "total = lax.reduce_sum(x, (0,))"
