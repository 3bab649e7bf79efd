"""Floats of eight bits that are exchanged by DLPack."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))


def evaluate(call):
    """Return the result of a call as a list of numbers, or the class of its error."""
    try:
        return np.asarray(call()).astype(np.float32).tolist()
    except Exception as error:  # noqa: BLE001 - the class is the observation
        return type(error).__name__.replace("Xla", "Jax")


NO_CODE_FOR_FLOAT8 = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="DLPack had no code for these dtypes before version 1.1",
    issue="jax-ml/jax@97bbc37e834e",
)


@probe(source="jax-ml/jax@97bbc37e834e", deviations=[NO_CODE_FOR_FLOAT8])
def float8_through_dlpack(env):
    """`jax.dlpack.from_dlpack` accepts float8 arrays, from 0.5.3."""
    arrays = {dtype: jnp.ones(2, dtype) for dtype in (jnp.float8_e4m3fn, jnp.float8_e5m2)}
    observed = {
        d.__name__: evaluate(lambda x=x: jax.dlpack.from_dlpack(x)) for d, x in arrays.items()
    }
    return Observed(observed, {name: [1.0, 1.0] for name in observed})
