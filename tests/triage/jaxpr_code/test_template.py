"""Templates: operands, parameters, and parameters that are left out."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.triage.jaxpr_code.program import UnsupportedJaxprError
from tests.ir.jaxpr.documents import eqn

from .documents import F32, KEY, statements

GATHER: dict[str, Any] = {"axis_name": ["x"], "axis_size": 4, "all_gather_dimension": 0}
PRODUCT: dict[str, Any] = {"dimension_numbers": [[[0], [0]], [[], []]]}


@pytest.mark.parametrize(
    ("made", "expression"),
    [
        (eqn("cumsum", [0], axis=0, reverse=False), "lax.cumsum(x, axis=0)"),
        (eqn("cumsum", [0], axis=0, reverse=True), "lax.cumsum(x, axis=0, reverse=True)"),
        (eqn("all_gather", [0], tiled=False, **GATHER), 'lax.all_gather(x, "x")'),
        (
            eqn("all_gather", [0], tiled=True, **{**GATHER, "all_gather_dimension": 1}),
            'lax.all_gather(x, "x", axis=1, tiled=True)',
        ),
        (eqn("qr", [0], full_matrices=False), "lax.linalg.qr(x, full_matrices=False)"),
        (eqn("optimization_barrier", [0]), "lax.optimization_barrier(x)"),
        (eqn("polynomial", [0, 1, 0]), "lax.polynomial(x, [y, x])"),
        (eqn("split", [0], sizes=[4], axis=0), "lax.split(x, (4,), axis=0)[0]"),
        (eqn("rsqrt", [0], accuracy=None), "lax.rsqrt(x)"),
    ],
)
def test_template_leaves_out_defaults(made: list[Any], expression: str) -> None:
    """Only of parameters with a `?`."""
    assert statements(made)[0].partition(" = ")[2] == expression


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (eqn("dot_general", [0, 1], precision="ODD", **PRODUCT), "precision: unsupported value"),
        (eqn("argmax", [0], axes=[0], index_dtype={"dtype": "odd"}), "has no public name"),
        (eqn("gather", [0, 1], dimension_numbers=3), "expected a record, got 3"),
        (eqn("random_seed", [0], (KEY,), impl="odd"), "impl: unsupported value"),
        (eqn("random_bits", [0], shape=[4], bit_width=32), "take one key, not an array of them"),
    ],
)
def test_unknown_parameter_value_is_refused(made: list[Any], message: str) -> None:
    """The message has its value."""
    with pytest.raises(UnsupportedJaxprError, match=message):
        statements(made, inputs=(F32, F32))
