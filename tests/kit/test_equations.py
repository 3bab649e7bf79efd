"""Equations of jaxprs, on an old, a middle and the newest release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.model.outcome import Outcome
from tests.workbench import Bench, leaf_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.cell
TOP = """
    import jax, jax.numpy as jnp
    from jax import lax
    from conformance.kit.endings import ending, refusal
    from conformance.kit.equations import counts, equations, first, size, types
    X = np.float32([1, 2, 3])
    def looping(x):
        step = lambda c, y: (jax.jit(jnp.sin)(c) + y, c)
        return lax.cond(x[0] > 0, lambda x: lax.scan(step, 0.0, x)[0], lambda x: x[0], x)
    def raising(error):
        raise error
"""


@pytest.fixture
def bench(bench_of_each_age: Bench, tmp_path: Path) -> Bench:
    """The kept worker, with a folder of case files of this test's own."""
    return bench_of_each_age.at(tmp_path)


@pytest.mark.long(keep=3)
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("counts(looping, (X,), 'scan cond sin cos')", {"scan": 1, "cond": 1, "sin": 1, "cos": 0}),
        ("first(looping, (X,), 'scan').params['length']", 3),
        ("types(first(looping, (X,), 'scan').invars)", ["float32[]", "float32[3]"]),
        ("size(lambda x: x * 2 + 1, X)", 2),
        ("size(looping, X) > size(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x), X[0])", True),
    ],
)
def test_nested_equations_are_found(bench: Bench, expression: str, expected: object) -> None:
    """In branches of cond, bodies of scan and functions under jit."""
    finished = bench.run(f"return np.array(({expression}) == {expected!r})", top=TOP)
    assert finished.outcome is Outcome.OK, finished.error
    assert leaf_of(finished).data == b"\x01"


@pytest.mark.long(keep=5)
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("refusal(lambda: 1)", "ran"),
        (
            "refusal(lambda: raising(ValueError('bad axis x')), 'axis', 'shape', 'x')",
            "ValueError: axis, x",
        ),
        ("ending(jnp.sin, X)", "accepted"),
        (
            "ending(raising, TypeError('no such axis'), words=['mesh', 'axis', 'no'])",
            "TypeError: axis",
        ),
        ("ending(raising, KeyError('k'))", "KeyError"),
    ],
)
def test_endings_have_the_class_and_the_words(bench: Bench, expression: str, expected: str) -> None:
    """The class of the error, and the given words that its message contains."""
    finished = bench.run(f"return np.array({expression} == {expected!r})", top=TOP)
    assert finished.outcome is Outcome.OK, finished.error
    assert leaf_of(finished).data == b"\x01"
