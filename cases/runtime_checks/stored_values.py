"""Traced values that a function stores, and that are used after its transformation has ended."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import floats

defaults(platforms=("cpu",))

TRANSFORMATIONS = {
    "grad": lambda f: jax.grad(f)(3.0),
    "vmap": lambda f: jax.vmap(f)(floats(1, 2)),
}
TRACE_OUTLIVED = deviation(
    "jax<0.4.36",
    outcome="ok",
    match="ran",
    reason="operations on a tracer were traced by its transformation, which never ended",
    issue="jax-ml/jax@c36e1f7c1ad4",
)


@probe(source="jax-ml/jax@c36e1f7c1ad4", params=[*TRANSFORMATIONS], deviations=[TRACE_OUTLIVED])
def stored_and_used_later(env, name):
    """A value that a differentiated or mapped function stored cannot be used after it."""
    stored = []

    def square(x):
        stored.append(x * x)
        return x * x

    TRANSFORMATIONS[name](square)
    found = refusal(lambda: jnp.sin(stored[0]) + 1, "side effect")
    return Observed(found, reference="UnexpectedTracerError: side effect")
