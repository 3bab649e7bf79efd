"""Linear algebra."""

from __future__ import annotations

from typing import Any

import pytest

from tests.ir.jaxpr.documents import eqn, jaxpr

from .documents import F32, F32S, WIDE, statements


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (eqn("cholesky", [0], (WIDE,)), "lax.linalg.cholesky(x, symmetrize_input=False)"),
        (
            eqn("eigh", [0], (WIDE,), lower=True, sort_eigenvalues=True, subset_by_index=None),
            "lax.linalg.eigh(x, lower=True, sort_eigenvalues=True, symmetrize_input=False)",
        ),
        (
            eqn("qr", [0], (WIDE,), full_matrices=False, pivoting=False, use_magma=None),
            "lax.linalg.qr(x, full_matrices=False)",
        ),
    ],
)
def test_statements(made: list[Any], said: str) -> None:
    """Each is a call of what is public."""
    assert statements(made, inputs=(WIDE, F32))[0].partition(" = ")[2] == said


def test_singular_values_come_between_the_vectors() -> None:
    """The primitive gives them first, the function second."""
    made = eqn("svd", [0], (F32, WIDE, WIDE), compute_uv=True, full_matrices=False)
    assert statements(made, inputs=(WIDE,), out=(1, 2, 3)) == [
        "svd_2, svd, svd_3 = lax.linalg.svd(x, full_matrices=False, compute_uv=True)",
        "return (svd, svd_2, svd_3)",
    ]


def test_a_linear_system_is_said_by_its_solver() -> None:
    """That of the transposed system is for derivatives."""
    names = ("matvec", "vecmat", "solve", "transpose_solve")
    made = eqn(
        "custom_linear_solve", [1, 0],
        const_lengths=["_LinearSolveTuple", *([name, int(name == "solve")] for name in names)],
        jaxprs=["_LinearSolveTuple", *([name, {"jaxpr": 1}] for name in names)],
    )  # fmt: skip
    solver = jaxpr(eqn("div", [1, 0]), inputs=(F32S, F32), out=(2,))
    assert statements(made, inputs=(F32, F32S), inner=(solver,))[0] == "div = x / y"
