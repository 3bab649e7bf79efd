"""Derivatives of the modulus, the sign of complex numbers and the hypotenuse."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import floats

defaults(platforms=("cpu",))

SIGN_WAS_CONSTANT = deviation(
    "jax<0.12",
    outcome="ok",
    reason="the sign was a constant to autodiff, as that of a real number",
)


@probe(source="jax-ml/jax#19390", rtol=1e-5, deviations=[SIGN_WAS_CONSTANT])
def direction_of_a_complex_number(env):
    """The derivative of `jnp.sign(z)`, which is z / |z|, is right from 0.12.0 on.

    Before, it was silently 0, so that a function of a phase had no gradient.
    """
    z = np.array([3 + 4j, 1j, -2], np.complex64)
    tangents = np.array([1, 1, 1j], np.complex64)
    result = jax.jit(lambda z, t: jax.jvp(jnp.sign, (z,), (t,))[1])(z, tangents)
    # The direction exp(i a) turns by the imaginary part of dz / z.
    exact = 1j * z / np.abs(z) * (tangents / z.astype(np.complex128)).imag
    return Observed(result, exact)


SQUARE_UNDERFLOWED = deviation(
    "jax<0.12",
    params=["small"],
    outcome="ok",
    reason="squares of numbers near 1e-30 are 0 in float32",
)
NAN_AT_THE_ORIGIN = deviation(
    "jax>=0.12",
    params=["origin"],
    outcome="ok",
    reason="0 is divided by 0",
)


@probe(
    source="jax-ml/jax#4893",
    params={
        "small": {"x": 1e-30, "slope": 0.7071067811865476},
        "origin": {"x": 0.0, "slope": 0.5},
        "usual": {"x": 3.0, "slope": 0.7071067811865476},
    },
    rtol=1e-6,
    deviations=[SQUARE_UNDERFLOWED, NAN_AT_THE_ORIGIN],
)
def slope_of_a_hypotenuse(env, x, slope):
    """The derivative of `hypot(x, x)` at 1e-30 is right from 0.12.0 on; before, it was -inf.

    At the origin, where there is none, it is NaN from 0.12.0 on; before, it was 0.5.
    """
    result = jax.jit(jax.grad(jnp.hypot))(*floats(x, x))
    return Observed(np.nan_to_num(result, nan=-777, neginf=-np.inf), np.float64(slope))


NO_CURVATURE = deviation(
    "jax<0.12",
    outcome="ok",
    reason="at equal arguments the derivative was half that of each as the larger one",
    issue="jax-ml/jax#4893",
)


@probe(source="jax-ml/jax#4893", rtol=1e-5, atol=1e-6, deviations=[NO_CURVATURE])
def curvature_of_a_hypotenuse(env):
    """The Hessian of `hypot` at (3, 3) is right from 0.12.0 on; before, it was silently 0."""
    hessian = jax.jit(jax.hessian(lambda v: jnp.hypot(v[0], v[1])))(floats(3, 3))
    exact = np.array([[9.0, -9], [-9, 9]]) / 18**1.5
    return Observed(hessian, exact)
