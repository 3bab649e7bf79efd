"""Errors of loops that name the function of the user, and branches for other platforms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

defaults(platforms=("cpu",))


FUNCTION_WITHIN_JAX = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the message named a function of fori_loop",
    issue="jax-ml/jax@3faff78ca8bf",
)


@probe(source="jax-ml/jax@3faff78ca8bf", deviations=[FUNCTION_WITHIN_JAX])
def function_of_a_failing_loop(env):
    """An error in the body of a `fori_loop` names the body, not a function within JAX."""

    def my_body(i, x):
        return bool(x)

    constant = refusal(lambda: lax.fori_loop(0, 5, my_body, 3.0), "my_body at")
    traced = refusal(lambda: jax.jit(lambda n: lax.fori_loop(0, n, my_body, 3.0))(5), "my_body at")
    return Observed([constant, traced], ["TracerBoolConversionError: my_body at"] * 2)


ALL_BRANCHES_TRACED = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="all branches were traced",
    issue="jax-ml/jax@6e3fc9a768ab",
)


@probe(source="jax-ml/jax@6e3fc9a768ab", deviations=[ALL_BRANCHES_TRACED])
def platform_outside_of_jit(env):
    """Outside of jit, `lax.platform_dependent` traces the branch of the platform alone."""
    traced = []

    def other(x):
        traced.append("other")
        return x

    lax.platform_dependent(1.0, cpu=jnp.sin, tpu=other)
    return Observed(len(traced), 0)


ANOTHER_BRANCH_TAKEN = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="the branch of another platform was compiled and taken",
    issue="jax-ml/jax#28594",
)


@probe(source="jax-ml/jax#28594", deviations=[ANOTHER_BRANCH_TAKEN])
def no_branch_for_the_platform(env):
    """Under jit, `lax.platform_dependent` without a branch for the platform is refused."""
    f = jax.jit(lambda x: lax.platform_dependent(x, tpu=jnp.sin))
    return Observed(
        refusal(lambda: f(1.0), "not found for platform"),
        "NotImplementedError: not found for platform",
    )
