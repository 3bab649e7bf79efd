"""Gradients of a replicated parameter in a data-parallel step.

This is the most common shard_map program: local loss, local gradient, mean over shards. With the
check on, its value changes between 0.5.3 and 0.6.1, silently (0.6.0 raises). The reference is
always the gradient over the whole batch on one device, in float64.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, defaults, deviation, program

from ._helpers import SHARDS, exact_gradient, loss, map_over_x, regression

defaults(devices=4)

SPECS = (P(), P("x"), P("x"))


def stack_copies(gradient):
    """Return the copies, one for each shard, of a gradient that should be the same on all."""
    return np.tile(gradient, (SHARDS, 1))


REPLICATED_COTANGENT_UNDER_CHECK = deviation(
    "jax==0.6.0",
    params=["check_on"],
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)
GRADIENT_SUMMED_ALREADY = deviation(
    "jax>=0.6.1",
    params=["check_on"],
    outcome="ok",
    reason="the transpose of the implicit pvary has already summed the gradient",
    issue="jax-ml/jax#36886",
)


@program(
    source="jax-ml/jax#36886",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    same_as=("jit", "aot", "vmap_of_one", "unsharded"),
    deviations=[REPLICATED_COTANGENT_UNDER_CHECK, GRADIENT_SUMMED_ALREADY],
)
def pmean_of_gradients(env, check):
    """`pmean(grad(local loss))`, with the check on, is the sum over shards from 0.6.1.

    The gradient is already summed, and pmean keeps the sum.
    """

    def step(w, x, y):
        return lax.pmean(jax.grad(loss)(w, x, y), "x")

    fn = map_over_x(env, step, SPECS, P(), check=check)
    return Program(fn, args=regression(env), reference=exact_gradient)


@program(
    source="jax-ml/jax#36886",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[REPLICATED_COTANGENT_UNDER_CHECK, GRADIENT_SUMMED_ALREADY],
)
def psum_of_gradients(env, check):
    """`psum(grad(local sum of squares))`, with the check on, sums twice from 0.6.1.

    The same as `pmean_of_gradients` with sums, scaled by the global batch.
    """

    def step(w, x, y):
        return lax.psum(jax.grad(lambda w: jnp.sum((x @ w - y) ** 2))(w), "x") / 8

    fn = map_over_x(env, step, SPECS, P(), check=check)
    return Program(fn, args=regression(env), reference=exact_gradient)


GRADIENT_OF_OWN_ROWS = deviation(
    "jax<0.6",
    params=["check_on"],
    outcome="ok",
    reason="psum is transposed to psum, so each shard has the gradient of its own rows",
    issue="jax-ml/jax#3970",
)
PSUM_IS_ITS_TRANSPOSE = deviation(
    params=["check_off"],
    outcome="ok",
    reason="without the types, psum is transposed to psum on every release",
    issue="jax-ml/jax#3970",
)


@program(
    source="jax-ml/jax#3970",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[GRADIENT_OF_OWN_ROWS, PSUM_IS_ITS_TRANSPOSE],
)
def gradient_of_pmean(env, check):
    """`grad(pmean(local loss))` should be global on every shard, because the loss is global.

    With the types of 0.6.0 it is. Without them psum is its own transpose, and each shard gets the
    gradient of its own rows.
    """

    def step(w, x, y):
        return jax.grad(lambda w: lax.pmean(loss(w, x, y), "x"))(w)[None]

    fn = map_over_x(env, step, SPECS, P("x"), check=check)
    return Program(
        fn,
        args=regression(env),
        reference=lambda w, x, y: stack_copies(exact_gradient(w, x, y)),
    )


COTANGENTS_ADD_UP = deviation(
    "jax<0.6",
    params=["check_on"],
    outcome="ok",
    reason="psum is transposed to psum, so the cotangents of all four shards add up",
    issue="jax-ml/jax#3970",
)


@program(
    source="jax-ml/jax#3970",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[COTANGENTS_ADD_UP, PSUM_IS_ITS_TRANSPOSE],
)
def sharded_input_of_psum(env, check):
    """The derivative of a psum of losses by the local rows should be 2x, as on one device.

    Without the types of 0.6.0, the transpose of psum sums the four cotangents of one: 8x.
    """
    x = env.rng(5).normal(size=8).astype(np.float32)

    def body(x):
        return jax.grad(lambda x: lax.psum(jnp.sum(x**2), "x"))(x)

    fn = map_over_x(env, body, P("x"), P("x"), check=check)
    return Program(fn, args=(x,), reference=lambda x: 2 * x.astype(np.float64))


REPLICATED_COTANGENT = deviation(
    "jax==0.6.0",
    error="ValueError",
    match="for argument to vjp function",
    reason="grad makes a replicated cotangent for a varying loss",
    issue="jax-ml/jax#28193",
)


@program(
    source="jax-ml/jax#36886",
    facts={"collectives": {"all-reduce": 1}},
    deviations=[REPLICATED_COTANGENT],
)
def step_made_varying(env):
    """The portable step marks `w` as varying, takes the local gradient, and then the pmean.

    It is right on every release that traces it; 0.6.0 raises.
    """

    def step(w, x, y):
        return lax.pmean(jax.grad(loss)(env.compat.pvary(w, "x"), x, y), "x")

    fn = map_over_x(env, step, SPECS, P())
    return Program(fn, args=regression(env), reference=exact_gradient)


def differentiate_from_outside(env, check):
    """Return a program that differentiates the mapped mean loss from outside."""

    def mean_loss(w, x, y):
        return lax.pmean(loss(w, x, y), "x")

    fn = jax.grad(map_over_x(env, mean_loss, SPECS, P(), check=check))
    return Program(fn, args=regression(env), reference=exact_gradient)


@program(source="jax-ml/jax#3970", facts={"collectives": {"all-reduce": 1}})
def gradient_outside(env):
    """The gradient of the mapped function, taken from outside, is right on every release.

    It needs one collective.
    """
    return differentiate_from_outside(env, check=True)


@program(source="jax-ml/jax#3970", facts={"collectives": {"all-reduce": 2}})
def gradient_outside_unchecked(env):
    """Without the check this gradient is right, too, but needs a second collective.

    The cotangent of the loss is summed as well. jax does not know that it is replicated: it divides
    it by four and sums it again.
    """
    return differentiate_from_outside(env, check=False)


SAMPLE_GRADIENTS_SUMMED_ALREADY = deviation(
    "jax>=0.6.1,!=0.8.1,!=0.8.2,!=0.8.3",
    params=["check_on"],
    outcome="ok",
    reason="the transpose of the implicit pvary has already summed the gradient",
    issue="jax-ml/jax#36886",
)
INSERTED_PSUM_NOT_BATCHED = deviation(
    "jax>=0.8.1,<0.9",
    params=["check_on"],
    error="TypeError",
    match="unexpected keyword argument 'axis_index_groups'",
    reason="the inserted psum cannot be batched",
    issue="jax-ml/jax#34249",
)


@program(
    source="jax-ml/jax#36886",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        REPLICATED_COTANGENT_UNDER_CHECK,
        SAMPLE_GRADIENTS_SUMMED_ALREADY,
        INSERTED_PSUM_NOT_BATCHED,
    ],
)
def per_sample_gradients(env, check):
    """Per-sample gradients by closed-over parameters: vmap inside shard_map against vmap alone.

    This is the program of the report. From 0.6.1, with the check on, row i of every shard is the
    sum of the rows i of all shards.
    """
    w, x, y = regression(env)

    def body(x, y):
        return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, x, y)

    def exact(x, y):
        x, y = x.astype(np.float64), y.astype(np.float64)
        return 2 * (x @ w.astype(np.float64) - y)[:, None] * x

    fn = map_over_x(env, body, (P("x"), P("x")), P("x"), check=check)
    return Program(fn, args=(x, y), reference=exact)


LOCAL_GRADIENT_SUMMED_ALREADY = deviation(
    "jax>=0.6.1",
    params=["local"],
    outcome="ok",
    reason="the transpose of the implicit pvary has already summed the gradient",
    issue="jax-ml/jax#36886",
)


@program(
    source="jax-ml/jax#36886",
    params={"local": {"varying": False}, "made_varying": {"varying": True}},
    deviations=[REPLICATED_COTANGENT, LOCAL_GRADIENT_SUMMED_ALREADY],
)
def three_steps(env, varying):
    """Three steps of gradient descent show what the factor does to training.

    The loss still falls.
    """

    def train(w, x, y):
        for _ in range(3):
            at = env.compat.pvary(w, "x") if varying else w
            w = w - 0.05 * lax.pmean(jax.grad(loss)(at, x, y), "x")
        return w

    def exact(w, x, y):
        w = w.astype(np.float64)
        for _ in range(3):
            w = w - 0.05 * exact_gradient(w, x, y)
        return w

    return Program(map_over_x(env, train, SPECS, P()), args=regression(env), reference=exact)
