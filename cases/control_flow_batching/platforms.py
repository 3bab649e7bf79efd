"""`lax.platform_dependent`: branches for other platforms, under jit, vmap and outside of both."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Observed, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import floats

OTHER_PLATFORM_LOWERED = deviation(
    "jax<0.6.1",
    outcome="ok",
    reason="the branch of the other platform was lowered, too",
    issue="jax-ml/jax#28594",
)


@probe(
    source="jax-ml/jax#28594",
    params={"vmapped": {"mapped": True}, "plain": {"mapped": False}},
    deviations=[OTHER_PLATFORM_LOWERED],
)
def branch_of_another_platform(env, mapped):
    """`platform_dependent` lowers no branch of another platform, also under vmap."""

    def fn(x):
        return lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos)

    fn = jax.vmap(fn) if mapped else fn
    lowered = jax.jit(fn).lower(floats(0.5, 1))
    text, value = lowered.as_text(), lowered.compile()(floats(0.5, 1))
    is_cpu = jax.default_backend() == "cpu"
    return Observed(
        {"value": value, "sines": text.count(".sine"), "cosines": text.count(".cos")},
        {
            "value": (np.sin if is_cpu else np.cos)([0.5, 1]),
            "sines": int(is_cpu),
            "cosines": int(not is_cpu),
        },
    )


ALL_BRANCHES_TRACED = deviation(
    "jax<0.4.31",
    outcome="ok",
    reason="all branches were traced",
    issue="jax-ml/jax@6e3fc9a768ab",
)


@probe(source="jax-ml/jax@6e3fc9a768ab", platforms=("cpu",), deviations=[ALL_BRANCHES_TRACED])
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


@probe(source="jax-ml/jax#28594", platforms=("cpu",), deviations=[ANOTHER_BRANCH_TAKEN])
def no_branch_for_the_platform(env):
    """Under jit, `lax.platform_dependent` without a branch for the platform is refused."""
    f = jax.jit(lambda x: lax.platform_dependent(x, tpu=jnp.sin))
    return Observed(
        refusal(lambda: f(1.0), "not found for platform"),
        "NotImplementedError: not found for platform",
    )


INDEX_MAPPED = deviation(
    "jax==0.6.1",
    error="AssertionError",
    match="should be a platform_index and should never be mapped",
    reason="a mapped outer condition also mapped the index of the platform",
    issue="jax-ml/jax#29329",
)


@probe(source="jax-ml/jax#29329", deviations=[INDEX_MAPPED])
def platform_in_a_mapped_branch(env):
    """A branch of a mapped `cond` transposes a `platform_dependent` of the caller, under vmap."""

    def lane(x):
        by_platform = jax.jit(lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos))
        _, linear = jax.linearize(by_platform, x)

        def transposed(x):
            return jax.linear_transpose(linear, x)(x)[0]

        return lax.cond(x > 0, transposed, lambda x: x, x)

    return Observed(jax.vmap(lane)(floats(1, -1)), np.array([np.cos(1.0), -1]))
