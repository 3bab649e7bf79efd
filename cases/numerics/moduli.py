"""Moduli of complex numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import inf, nan, replace_nan

defaults(platforms=("cpu",))

NAN_PREVAILED = deviation(
    "jax<0.12",
    outcome="ok",
    reason="NaN prevailed over infinity",
)


@probe(source="jax-ml/jax#20754", deviations=[NAN_PREVAILED])
def modulus_of_infinity(env):
    """`abs(complex(inf, nan))` is infinite from 0.12.0 on, as in NumPy and C; before, NaN."""
    z = np.array([complex(inf, nan), complex(nan, -inf), complex(nan, 1), 3 + 4j], np.complex64)
    return Observed(replace_nan(jax.jit(jnp.abs)(z)), replace_nan(np.abs(z)))
