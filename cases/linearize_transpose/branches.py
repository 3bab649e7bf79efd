"""Linearised and transposed within what surrounds it: branches under vmap, an iterative solver."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe


@probe(
    source="jax-ml/jax#29329",
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax==0.6.1",
            error="AssertionError",
            match="should never be mapped",
            reason="the index of the platform was a residual, and vmap of the cond mapped it",
            issue="jax-ml/jax#29329",
        )
    ],
)
def platform_in_a_mapped_branch(env):
    """Linearised beside a cond, transposed in its branch, under vmap: refused by 0.6.1 alone.

    Of a `platform_dependent` the residuals hold which platform it was, as a number.
    """

    def backwards(x):
        choose = lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)  # noqa: E731
        _, linear = jax.linearize(jax.jit(choose), x)
        transpose = lambda x: jax.linear_transpose(linear, x)(x)[0]  # noqa: E731 - short
        return lax.cond(x > 0, transpose, lambda x: x, x)

    x = np.array([-1, 1, 2], np.float32)
    exact = np.where(x > 0, x * np.cos(np.float64(x)), x)
    return Observed(jax.jit(jax.vmap(backwards))(x), reference=exact)


@probe(
    source="jax-ml/jax#30327",
    xla_flags=["--xla_backend_optimization_level=0"],
    devices=2,
    platforms=("cpu",),
    releases="jax>=0.6.1",
    deviations=[
        deviation(
            "jax<0.7",
            error="ShardingTypeError",
            match="scatter-add is not implemented",
            reason="the transpose of an index is a scatter, which had no rule on explicit axes",
            issue="jax-ml/jax#30327",
        ),
        deviation(
            "jax==0.7.0",
            error="NotImplementedError",
            match="scatter_add is not implemented",
            reason="still none, for what a gradient needs of it",
            issue="jax-ml/jax#30327",
        ),
    ],
)
def normal_equations_on_an_explicit_mesh(env):
    """`sparse.linalg.cg` of J^T J by linearize and linear_transpose, where J indexes rows."""
    rows, w = np.array([0, 2]), np.array([1, 2, 3], np.float32)

    def predict(w):
        return 2 * w[rows]

    def product(v):
        _, forward = jax.linearize(predict, w)
        return v + jax.linear_transpose(forward, w)(forward(v))[0]

    with env.compat.set_mesh(env.mesh(2, "x", explicit=True)):
        solved, _ = jax.scipy.sparse.linalg.cg(product, jnp.asarray(w))
    return Observed(solved, reference=w / np.array([5.0, 1, 5]))
