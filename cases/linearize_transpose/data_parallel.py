"""Gradients of a replicated parameter in a data-parallel step.

The most common shard_map program there is: local loss, local gradient, mean over shards. With
the check on it changes value between 0.5.3 and 0.6.1, silently (0.6.0 raises). The reference
everywhere is the gradient over the whole batch on one device, in float64.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, deviation, program

from ._helpers import SHARDS, exact_gradient, loss, mapped, regression

SPECS = (P(), P("x"), P("x"))


def stacked(gradient):
    """Return what each shard holds of a gradient that should be the same on all."""
    return np.tile(gradient, (SHARDS, 1))


@program(
    source="jax-ml/jax#36886",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    same_as=("jit", "aot", "vmap_of_one", "unsharded"),
    deviations=[
        deviation(
            "jax==0.6.0",
            params=["check_on"],
            error="ValueError",
            match="for argument to vjp function",
            reason="grad makes a replicated cotangent for a varying loss",
            issue="jax-ml/jax#28193",
        ),
        deviation(
            "jax>=0.6.1",
            params=["check_on"],
            outcome="ok",
            reason="the gradient is summed already, by the transpose of the implicit pvary",
            issue="jax-ml/jax#36886",
        ),
    ],
)
def pmean_of_gradients(env, check):
    """`pmean(grad(local loss))`: the gradient is summed already from 0.6.1, pmean keeps the sum."""

    def step(w, x, y):
        return lax.pmean(jax.grad(loss)(w, x, y), "x")

    fn = mapped(env, step, SPECS, P(), check=check)
    return Program(fn, args=regression(env), reference=exact_gradient)


@program(
    source="jax-ml/jax#36886",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax==0.6.0",
            params=["check_on"],
            error="ValueError",
            match="for argument to vjp function",
            reason="grad makes a replicated cotangent for a varying loss",
            issue="jax-ml/jax#28193",
        ),
        deviation(
            "jax>=0.6.1",
            params=["check_on"],
            outcome="ok",
            reason="the gradient is summed already, by the transpose of the implicit pvary",
            issue="jax-ml/jax#36886",
        ),
    ],
)
def psum_of_gradients(env, check):
    """The same with sums: `psum(grad(local sum of squares))`, scaled by the global batch."""

    def step(w, x, y):
        return lax.psum(jax.grad(lambda w: jnp.sum((x @ w - y) ** 2))(w), "x") / 8

    fn = mapped(env, step, SPECS, P(), check=check)
    return Program(fn, args=regression(env), reference=exact_gradient)


@program(
    source="jax-ml/jax#3970",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax<0.6",
            params=["check_on"],
            outcome="ok",
            reason="psum is transposed to psum: each shard has the gradient of its own rows",
            issue="jax-ml/jax#3970",
        ),
        deviation(
            params=["check_off"],
            outcome="ok",
            reason="the same without the types, on every release",
            issue="jax-ml/jax#3970",
        ),
    ],
)
def gradient_of_pmean(env, check):
    """`grad(pmean(local loss))`: the loss is global, so its gradient should be, on every shard.

    With the types of 0.6.0 it is. Without them psum is its own transpose and each shard is left
    with the gradient of its own rows.
    """

    def step(w, x, y):
        return jax.grad(lambda w: lax.pmean(loss(w, x, y), "x"))(w)[None]

    fn = mapped(env, step, SPECS, P("x"), check=check)
    return Program(
        fn,
        args=regression(env),
        reference=lambda w, x, y: stacked(exact_gradient(w, x, y)),
    )


@program(
    source="jax-ml/jax#3970",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax<0.6",
            params=["check_on"],
            outcome="ok",
            reason="psum is transposed to psum: the cotangents of all four shards add up",
            issue="jax-ml/jax#3970",
        ),
        deviation(
            params=["check_off"],
            outcome="ok",
            reason="the same without the types, on every release",
            issue="jax-ml/jax#3970",
        ),
    ],
)
def sharded_input_of_psum(env, check):
    """Derivative of a psum'd loss by the local rows: 2x, as on one device.

    Without the types of 0.6.0 the transpose of psum sums the four cotangents of one: 8x.
    """
    x = env.rng(5).normal(size=8).astype(np.float32)

    def body(x):
        return jax.grad(lambda x: lax.psum(jnp.sum(x**2), "x"))(x)

    fn = mapped(env, body, P("x"), P("x"), check=check)
    return Program(fn, args=(x,), reference=lambda x: 2 * x.astype(np.float64))


@program(
    source="jax-ml/jax#36886",
    devices=4,
    facts={"collectives": {"all-reduce": 1}},
    deviations=[
        deviation(
            "jax==0.6.0",
            error="ValueError",
            match="for argument to vjp function",
            reason="grad makes a replicated cotangent for a varying loss",
            issue="jax-ml/jax#28193",
        ),
    ],
)
def step_made_varying(env):
    """The portable step: a varying copy of `w`, local gradient, pmean; right on every release."""

    def step(w, x, y):
        return lax.pmean(jax.grad(loss)(env.compat.pvary(w, "x"), x, y), "x")

    fn = mapped(env, step, SPECS, P())
    return Program(fn, args=regression(env), reference=exact_gradient)


def differentiated_outside(env, check):
    """Return the gradient of the mapped, pmean'd loss."""

    def mean_loss(w, x, y):
        return lax.pmean(loss(w, x, y), "x")

    fn = jax.grad(mapped(env, mean_loss, SPECS, P(), check=check))
    return Program(fn, args=regression(env), reference=exact_gradient)


@program(source="jax-ml/jax#3970", devices=4, facts={"collectives": {"all-reduce": 1}})
def gradient_outside(env):
    """Differentiate the mapped function from outside: right everywhere, one collective."""
    return differentiated_outside(env, check=True)


@program(source="jax-ml/jax#3970", devices=4, facts={"collectives": {"all-reduce": 2}})
def gradient_outside_unchecked(env):
    """Without the check it is right too, but the cotangent of the loss is summed as well.

    Not knowing that it is replicated, jax splits it in four and adds it up again.
    """
    return differentiated_outside(env, check=False)


@program(
    source="jax-ml/jax#36886",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax==0.6.0",
            params=["check_on"],
            error="ValueError",
            match="for argument to vjp function",
            reason="grad makes a replicated cotangent for a varying loss",
            issue="jax-ml/jax#28193",
        ),
        deviation(
            "jax>=0.6.1,!=0.8.1,!=0.8.2,!=0.8.3",
            params=["check_on"],
            outcome="ok",
            reason="the gradient is summed already, by the transpose of the implicit pvary",
            issue="jax-ml/jax#36886",
        ),
        deviation(
            "jax>=0.8.1,<0.9",
            params=["check_on"],
            error="TypeError",
            match="unexpected keyword argument 'axis_index_groups'",
            reason="the psum that is inserted cannot be batched",
            issue="jax-ml/jax#34249",
        ),
    ],
)
def per_sample_gradients(env, check):
    """Per-sample gradients by closed-over parameters: vmap inside against vmap alone.

    The report's program. From 0.6.1 row i of every shard is the sum of the rows i of all shards.
    """
    w, x, y = regression(env)

    def body(x, y):
        return jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, x, y)

    def exact(x, y):
        x, y = x.astype(np.float64), y.astype(np.float64)
        return 2 * (x @ w.astype(np.float64) - y)[:, None] * x

    fn = mapped(env, body, (P("x"), P("x")), P("x"), check=check)
    return Program(fn, args=(x, y), reference=exact)


@program(
    source="jax-ml/jax#36886",
    devices=4,
    params={"local": {"varying": False}, "made_varying": {"varying": True}},
    deviations=[
        deviation(
            "jax==0.6.0",
            error="ValueError",
            match="for argument to vjp function",
            reason="grad makes a replicated cotangent for a varying loss",
            issue="jax-ml/jax#28193",
        ),
        deviation(
            "jax>=0.6.1",
            params=["local"],
            outcome="ok",
            reason="the gradient is summed already, by the transpose of the implicit pvary",
            issue="jax-ml/jax#36886",
        ),
    ],
)
def three_steps(env, varying):
    """Three steps of gradient descent: what the factor does to training, the loss still falls."""

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

    return Program(mapped(env, train, SPECS, P()), args=regression(env), reference=exact)
