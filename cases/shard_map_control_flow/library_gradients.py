"""Gradients of library functions, taken on each shard.

A derivative rule makes constants, transposes and loops that the function itself has not, so a
function may work under the check while its gradient raises. References are derivatives in closed
form.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import numpy as np

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import apply_by_shard, call_mapped, numbers

defaults(devices=4)


def transform_weights(u):
    """Return the derivatives of the sum of the real parts of `rfft`: sums of cosines."""
    n = len(u)
    return np.array(
        [sum(math.cos(2 * math.pi * j * k / n) for k in range(n // 2 + 1)) for j in range(n)]
    )


def slope_of_gelu(u):
    """Return the derivative of x times the normal distribution function at x."""
    density = np.exp(-(u**2) / 2) / math.sqrt(2 * math.pi)
    return (1 + np.vectorize(math.erf)(u / math.sqrt(2))) / 2 + u * density


FUNCTIONS = {
    "gelu": (lambda u: jax.nn.gelu(u, approximate=False), slope_of_gelu),
    "erf": (jax.lax.erf, lambda u: 2 / math.sqrt(math.pi) * np.exp(-(u**2))),
    "sinc": (jnp.sinc, lambda u: (np.cos(math.pi * u) - np.sinc(u)) / u),
    "rfft": (lambda u: jnp.fft.rfft(u).real, transform_weights),
    "log_determinant": (lambda u: jnp.linalg.slogdet(jnp.diag(u))[1], lambda u: 1 / u),
    "sine_integral": (lambda u: jsp.special.sici(u)[0], lambda u: np.sin(u) / u),
}
LOCAL_LOSS_REFUSED = deviation(
    "jax==0.6.0",
    params=["gelu", "erf", "sinc", "rfft"],
    error="ValueError",
    match="unexpected JAX type .* for argument to vjp function",
    reason="the cotangent of a loss that varies was not typed as varying",
    issue="jax-ml/jax#28193",
)
COEFFICIENTS_DO_NOT_VARY = deviation(
    "jax>=0.12",
    params=["gelu", "erf", "sinc", "sine_integral"],
    error="ValueError",
    match="Primitive polynomial requires varying manual axes to match",
    reason="the coefficients of a polynomial in the derivative do not vary as its argument does",
)
TRANSPOSE_DOES_NOT_VARY = deviation(
    "jax>=0.6.1,<0.9.1",
    params=["rfft"],
    error="TypeError",
    match="cotangent type does not match function output",
    reason="the transpose of rfft was a linear transpose at zeros that do not vary",
    issue="jax-ml/jax@182eab58d85c",
)
ZERO_TANGENT_DOES_NOT_VARY = deviation(
    "jax>=0.6,<0.7",
    params=["log_determinant"],
    error="TypeError",
    match="Custom JVP rule must produce primal and tangent outputs with corresponding shapes",
    reason="the tangent of the sign is zeros that do not vary",
)
NO_RULE_FOR_SOLVE = deviation(
    "jax<0.4.31",
    params=["log_determinant"],
    error="NotImplementedError",
    match="No replication rule for custom_linear_solve",
    reason="the check had no rule for custom_linear_solve",
)
PIECES_DO_NOT_VARY = deviation(
    "jax<0.8.2",
    params=["sine_integral"],
    error="TypeError",
    match="switch branches must have equal output types",
    reason="one of the pieces is a constant that does not vary",
)


@probe(
    source="jax-ml/jax@182eab58d85c",
    params={
        "gelu": {"name": "gelu"},
        "erf": {"name": "erf"},
        "sinc": {"name": "sinc"},
        "rfft": {"name": "rfft"},
        "log_determinant": {"name": "log_determinant"},
        "sine_integral": {"name": "sine_integral"},
    },
    deviations=[
        LOCAL_LOSS_REFUSED,
        COEFFICIENTS_DO_NOT_VARY,
        TRANSPOSE_DOES_NOT_VARY,
        ZERO_TANGENT_DOES_NOT_VARY,
        NO_RULE_FOR_SOLVE,
        PIECES_DO_NOT_VARY,
    ],
)
def gradient_on_each_shard(env, name):
    """The gradient of `gelu(u, approximate=False)`, an erf, is refused from 0.12.0 on."""
    fn, exact = FUNCTIONS[name]
    if name == "sine_integral" and not hasattr(jsp.special, "sici"):
        env.unsupported("jax.scipy.special has no sici here")
    u = numbers(env)
    observed = call_mapped(env, jax.grad(lambda u: jnp.sum(fn(u))), u)
    return Observed(observed, apply_by_shard(exact, u.astype(np.float64)))
