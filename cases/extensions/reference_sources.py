"""The array that a reference is made of."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import new_reference, outcome

defaults(platforms=("cpu",))

SOURCE_GIVEN_AWAY = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the reference had the buffer of the array, and not a copy",
    issue="jax-ml/jax@719031c1fd8a",
)


@probe(source="jax-ml/jax@719031c1fd8a", deviations=[SOURCE_GIVEN_AWAY])
def source_of_a_reference(env):
    """The array that a reference was made of keeps its value when the reference is written to."""
    x = jax.jit(lambda: jnp.arange(3.0))()
    ref = new_reference(x)

    def write():
        ref[0] = jnp.float32(9)
        return np.asarray(x)

    return Observed((outcome(write), outcome(lambda: np.asarray(x + 1))), ("ran", "ran"))
