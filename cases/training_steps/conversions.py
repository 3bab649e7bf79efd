"""Rounding to a narrow dtype within jit: emulated low precision must not be compiled away.

Up to 0.4.31, XLA for CPUs kept intermediate results in float32, so that code that rounds on
purpose did nothing.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

defaults(platforms=("cpu",))

NARROW = {
    "bfloat16": ml_dtypes.bfloat16,
    "float16": np.float16,
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
}
CONVERSION_REMOVED = deviation(
    "jax<0.4.33",
    outcome="ok",
    reason="XLA removed conversions to a narrower dtype and back",
    issue="jax-ml/jax#23007",
)


@probe(source="jax-ml/jax#23007", params=[*NARROW], deviations=[CONVERSION_REMOVED])
def round_trip(env, name):
    """Conversion to a narrower dtype and back rounds float32 numbers within jit."""
    x = np.linspace(0.1, 1.3, 7).astype(np.float32)
    fn = jax.jit(lambda x: x.astype(NARROW[name]).astype(np.float32))
    return Observed(fn(x), x.astype(NARROW[name]).astype(np.float32))


@probe(source="jax-ml/jax#23007", deviations=[CONVERSION_REMOVED])
def rounding_error(env):
    """The error of a sum in bfloat16, `y - ((x + y) - x)`, is not zero within jit."""
    x, y = np.arange(4, 8), np.arange(1, 5) / 1000
    x, y = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
    return Observed(jax.jit(lambda x, y: y - ((x + y) - x))(x, y), y - ((x + y) - x))


@probe(source="jax-ml/jax#23007", deviations=[CONVERSION_REMOVED])
def straight_through_estimator(env):
    """A weight that is rounded to bfloat16 in the forward pass alone gives the rounded loss."""
    w = np.linspace(0.1, 1.3, 7).astype(np.float32)
    rounded = lambda w: w + jax.lax.stop_gradient(w.astype(jnp.bfloat16).astype(w.dtype) - w)  # noqa: E731
    loss, grad = jax.jit(jax.value_and_grad(lambda w: (rounded(w) ** 2).sum()))(w)
    exact = w.astype(ml_dtypes.bfloat16).astype(np.float64)
    return Observed((loss, grad), ((exact**2).sum(), 2 * exact))
