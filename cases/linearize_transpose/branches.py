"""Linearised and transposed inside other code: branches under vmap, an iterative solver."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe

PLATFORM_INDEX_IS_RESIDUAL = deviation(
    "jax==0.6.1",
    error="AssertionError",
    match="should never be mapped",
    reason="the platform index was a residual, and vmap of the cond mapped it",
    issue="jax-ml/jax#29329",
)


@probe(source="jax-ml/jax#29329", platforms=("cpu",), deviations=[PLATFORM_INDEX_IS_RESIDUAL])
def platform_in_a_mapped_branch(env):
    """A function linearised outside a cond can be transposed in its branch, under vmap.

    Only 0.6.1 refuses it. The residuals of a `platform_dependent` include the platform, as a
    number.
    """

    def backwards(x):
        choose = lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)  # noqa: E731
        _, linear = jax.linearize(jax.jit(choose), x)
        transpose = lambda x: jax.linear_transpose(linear, x)(x)[0]  # noqa: E731 - short
        return lax.cond(x > 0, transpose, lambda x: x, x)

    x = np.array([-1, 1, 2], np.float32)
    exact = np.where(x > 0, x * np.cos(np.float64(x)), x)
    return Observed(jax.jit(jax.vmap(backwards))(x), reference=exact)


NO_RULE_FOR_SCATTER = deviation(
    "jax<0.7",
    error="ShardingTypeError",
    match="scatter-add is not implemented",
    reason="the transpose of an index is a scatter, which had no rule for explicit axes",
    issue="jax-ml/jax#30327",
)
NO_RULE_FOR_SCATTER_GRADIENT = deviation(
    "jax==0.7.0",
    error="NotImplementedError",
    match="scatter_add is not implemented",
    reason="scatter still had no rule for the form that a gradient needs",
    issue="jax-ml/jax#30327",
)


@probe(
    source="jax-ml/jax#30327",
    xla_flags=["--xla_backend_optimization_level=0"],
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[NO_RULE_FOR_SCATTER, NO_RULE_FOR_SCATTER_GRADIENT],
)
def normal_equations_on_an_explicit_mesh(env):
    """`sparse.linalg.cg` solves with a J^T J made by linearize and linear_transpose.

    J indexes rows, in the context of an explicit mesh.
    """
    rows, w = np.array([0, 2]), np.array([1, 2, 3], np.float32)

    def predict(w):
        return 2 * w[rows]

    def product(v):
        _, forward = jax.linearize(predict, w)
        return v + jax.linear_transpose(forward, w)(forward(v))[0]

    with env.compat.set_mesh(env.mesh(2, "x", explicit=True)):
        solved, _ = jax.scipy.sparse.linalg.cg(product, jnp.asarray(w))
    return Observed(solved, reference=w / np.array([5.0, 1, 5]))
