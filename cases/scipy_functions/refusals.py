"""Arguments that functions of `jax.scipy` refuse, or refused where they should not."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.fft
import jax.scipy.special
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending

defaults(platforms=("cpu",))

AXIS_TRANSFORMED_TWICE = deviation(
    "jax<0.8",
    outcome="ok",
    reason="the repeated axis was transformed twice",
    issue="jax-ml/jax@dac1f4cf850a",
)


@probe(source="jax-ml/jax@dac1f4cf850a", deviations=[AXIS_TRANSFORMED_TWICE])
def repeated_axis_of_idctn(env):
    """`idctn` with a repeated axis is a ValueError from 0.8.0 on; before, silently accepted."""
    x = np.ones((4, 4), np.float32)
    outcome = ending(lambda: jax.scipy.fft.idctn(x, axes=(0, 0)))
    return Observed(outcome, reference="ValueError")


TRACER_KEPT = deviation(
    "jax<0.5.3",
    outcome="ok",
    reason="a traced function that was kept had a tracer of the outer one",
    issue="jax-ml/jax@b441b2b7a500",
)


@probe(source="jax-ml/jax@b441b2b7a500", deviations=[TRACER_KEPT])
def leaks_of_expn(env):
    """`jax.scipy.special.expn` under jit passes `jax.checking_leaks` from 0.5.3 on."""
    with jax.checking_leaks():
        expn = jax.jit(lambda x: jax.scipy.special.expn(3, x))
        outcome = ending(expn, jnp.float32(2))
    return Observed({"accepted": outcome == "accepted"}, reference={"accepted": True})
