"""Derivatives of functions of `jax.nn` and `jax.scipy` that were wrong or missing."""

from __future__ import annotations

import jax
import numpy as np
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))

NO_ACCURACY_MODES = deviation(
    "jax<0.7.2",
    error="AttributeError",
    match="AccuracyMode",
    reason="the class was private",
    issue="jax-ml/jax@893b483e3f13",
)
SATURATED = {
    "logistic": (20.0, np.exp(-20.0) / (1 + np.exp(-20.0)) ** 2),
}


@probe(
    source="jax-ml/jax@893b483e3f13",
    params=[*SATURATED],
    releases="jax>=0.6",
    rtol=1e-4,
    deviations=[NO_ACCURACY_MODES],
)
def slope_at_the_highest_accuracy(env, name):
    """With `accuracy=lax.AccuracyMode.HIGHEST`, the derivative is right where it is tiny."""
    x, slope = SATURATED[name]
    fn = getattr(lax, name)
    result = jax.grad(lambda x: fn(x, accuracy=lax.AccuracyMode.HIGHEST))(np.float32(x))
    return Observed(result, reference=slope)
