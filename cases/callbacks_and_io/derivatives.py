"""`jax.debug.callback` in functions that are differentiated: how often the host is called.

The callback reads a value that the function computes. Its result is not used, so that JAX drops it
wherever it removes unused operations.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))


def repeat(f):
    """Return a function that applies another one three times."""
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, length=3)[0]


CALLERS = {"alone": (jax.grad, 1), "scan": (lambda f: jax.grad(repeat(f)), 3)}


def count_calls(transform, of_result):
    """Return how often the callback of a sine is called, if the sine is transformed."""
    calls = []

    def sine(x):
        y = jnp.sin(x)
        jax.debug.callback(calls.append, y if of_result else x)
        return y

    jax.block_until_ready(transform(sine)(1.0))
    jax.effects_barrier()
    return len(calls)


DROPPED_FROM_THE_SCAN = deviation(
    "jax<0.6.2",
    params=["scan"],
    outcome="ok",
    reason="the callback was dropped with the part of the scan that is not differentiated",
    issue="jax-ml/jax@a964f54dd1a2",
)


@probe(source="jax-ml/jax@a964f54dd1a2", params=[*CALLERS], deviations=[DROPPED_FROM_THE_SCAN])
def calls_of_a_gradient(env, name):
    """A callback runs once for each evaluation of a function, of its argument or its result."""
    transform, expected = CALLERS[name]
    counts = [count_calls(transform, of_result) for of_result in (False, True)]
    return Observed(counts, [expected, expected])
