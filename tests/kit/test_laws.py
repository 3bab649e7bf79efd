"""Checks of laws, on an old, a middle and the newest release."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from conformance.model.outcome import Outcome
from tests.workbench import Bench, value_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cell
TOP = """
    import jax, jax.numpy as jnp
    from conformance.kit.laws import *
    from conformance.kit.laws import check_idempotent, check_inverse, check_linear, check_same
    X, Y = np.float32([1, -2, 4]), np.float32([0.5, 3, -1])
    def outcome(check, *args, **kwargs):
        try:
            check(*args, **kwargs)
        except LawError as error:
            return str(error)
        return "holds"
"""
HOLDS = "holds"


@pytest.fixture
def bench(bench_of_each_age: Bench, tmp_path: Path) -> Bench:
    """The kept worker, with a folder of case files of this test's own."""
    return bench_of_each_age.at(tmp_path)


CHECKS = {
    "check_same, jnp.sin(X), np.sin(X.astype(float))": HOLDS,
    "check_same, jnp.float32([np.nan, np.inf]), np.float32([np.nan, np.inf])": HOLDS,
    "check_same, jnp.float32([np.nan, 1]), np.float32([0, 1])": (
        "out 1 of 2 elements differ, first at [0]: nan against 0.0, rtol 2e-05"
    ),
    "check_same, {'a': X, 'b': jnp.int32(2)}, {'a': X, 'b': np.int64(3)}": (
        "out['b'] differs, first: 2 against 3"
    ),
    "check_same, X, X * np.float32(1 + 1e-5)": HOLDS,
    "check_same, X, X * np.float32(1 + 1e-5), rtol=0": (
        "out 3 of 3 elements differ, first at [0]: 1.0 against 1.00001, exact"
    ),
    "check_same, X, X[:2]": "out has shape (3,), expected (2,)",
    "check_same, X.astype(np.float16), X": "out is float16, expected float32",
    "check_same, X.astype(jnp.bfloat16), X.astype(jnp.bfloat16)": HOLDS,
    "check_same, jnp.complex64(1 + 2j), np.complex64(1 + 3j)": (
        "out differs, first: (1+2j) against (1+3j), rtol 2e-05"
    ),
    "check_same, jax.random.key(1), jax.random.key(1)": HOLDS,
    "check_linear, jnp.cumsum, X, Y": HOLDS,
    "check_linear, lambda x: {'twice': 2 * x, 'sum': x.sum()}, X[0], Y[0]": HOLDS,
    "check_linear, lambda x: x + 1, X, Y": (
        "out 3 of 3 elements differ, first at [0]: 1.5 against -0.5, rtol 2e-05"
    ),
    "check_idempotent, jnp.sort, X": HOLDS,
    "check_idempotent, jnp.negative, X": (
        "out 3 of 3 elements differ, first at [0]: 1.0 against -1.0, rtol 2e-05"
    ),
    "check_inverse, jnp.exp, jnp.log, X[0]": HOLDS,
    "check_inverse, jnp.abs, jnp.abs, X": (
        "out 1 of 3 elements differ, first at [1]: 2.0 against -2.0, rtol 2e-05"
    ),
}


def test_checks_compare_as_references_are_compared(bench: Bench) -> None:
    """By dtype, NaN with NaN, NumPy's float64 as exact numbers; the first difference is named."""
    calls = ", ".join(f"{text!r}: outcome({text})" for text in CHECKS)
    finished = bench.run(f"return {{{calls}}}", top=TOP)
    assert finished.outcome is Outcome.OK, finished.error
    found = {leaf.path: ast.literal_eval(leaf.data.decode()) for leaf in value_of(finished).leaves}
    assert found == {f"out[{text!r}]": expected for text, expected in CHECKS.items()}
