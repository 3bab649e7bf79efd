"""Linearize at a bound primal, transpose the tangent map, all inside shard_map.

The pair `linearize` + `linear_transpose` is how matrix-free methods get J and J^T at one point
(Gauss-Newton, Fisher-vector products). The point is often the same on every shard while the
tangents are not. Up to 0.5.3 nothing minded. From 0.6.0 the types inside shard_map say over which
mesh axes a value varies, and a tangent must have the type of its primal: a varying tangent at a
replicated point is refused. Making the point varying first says what is meant, on every release.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, deviation, program

from ._helpers import SHARDS, mapped


def mean_cube(p):
    """Mean of cubes of three numbers: its gradient is `p ** 2`."""
    return jnp.mean(p**3)


def there_and_back(p, t):
    """Return J^T J t for the Jacobian J of `mean_cube` at `p`."""
    _, forward = jax.linearize(mean_cube, p)
    (back,) = jax.linear_transpose(forward, p)(forward(t))
    return back


def exact(p, t):
    """Return p^2 (p^2 . t) for each shard's three tangents, in float64."""
    row = np.asarray(p, np.float64) ** 2
    shards = np.asarray(t, np.float64).reshape(SHARDS, 3)
    return np.concatenate([row * (row @ shard) for shard in shards])


def inputs(env):
    """Return a point of three numbers and tangents, three for each shard."""
    rng = env.rng(1)
    return rng.normal(size=3).astype(np.float32), rng.normal(size=12).astype(np.float32)


@program(
    source="jax-ml/jax#28260",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax>=0.6",
            params=["check_on"],
            error="ValueError",
            match="tangent values inconsistent with the original primal values",
            reason="the tangent varies over x, the point does not",
            issue="jax-ml/jax#28260",
        )
    ],
)
def closed_over(env, check):
    """The report's own program: the point is a constant of the mapped function."""
    p, t = inputs(env)
    fn = mapped(env, lambda t: there_and_back(p, t), P("x"), P("x"), check=check)
    return Program(fn, args=(t,), reference=lambda t: exact(p, t))


@program(
    source="jax-ml/jax#28260",
    devices=4,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax>=0.6",
            params=["check_on"],
            error="ValueError",
            match="tangent values inconsistent with the original primal values",
            reason="the tangent varies over x, the point does not",
            issue="jax-ml/jax#28260",
        )
    ],
)
def passed_replicated(env, check):
    """The point is an argument with `P()`: to the types the same as a constant."""
    p, t = inputs(env)
    fn = mapped(env, there_and_back, (P(), P("x")), P("x"), check=check)
    return Program(fn, args=(p, t), reference=exact)


@program(source="jax-ml/jax#28260", devices=4)
def passed_sharded(env):
    """Each shard has its own copy of the point: point and tangents vary alike, and all agree."""
    p, t = inputs(env)
    fn = mapped(env, there_and_back, (P("x"), P("x")), P("x"))
    return Program(fn, args=(np.tile(p, SHARDS), t), reference=lambda _, t: exact(p, t))


@program(source="jax-ml/jax#28260", devices=4, facts={"collectives": {}})
def point_made_varying(env):
    """The way out: mark the replicated point as varying; it costs no communication."""
    p, t = inputs(env)

    def body(p, t):
        return there_and_back(env.compat.pvary(p, "x"), t)

    fn = mapped(env, body, (P(), P("x")), P("x"))
    return Program(fn, args=(p, t), reference=exact)


@program(source="jax-ml/jax#28260", devices=4)
def replicated_tangent(env):
    """Point and tangent both replicated: their types agree and no collective is called for."""
    p, t = inputs(env)
    fn = mapped(env, there_and_back, (P(), P()), P())
    return Program(fn, args=(p, t[:3]), reference=lambda p, t: exact(p, np.tile(t, SHARDS))[:3])


@program(source="jax-ml/jax#28260", devices=4)
def jvp_varying_tangent(env):
    """What linearize refuses `jvp` takes: a directional derivative for each shard at one point."""
    p, t = inputs(env)

    def body(p, t):
        return jax.jvp(mean_cube, (p,), (t,))[1][None]

    fn = mapped(env, body, (P(), P("x")), P("x"))
    return Program(fn, args=(p, t), reference=directional)


@program(source="jax-ml/jax#28260", devices=4)
def jvp_made_varying(env):
    """Spelled out, the same derivative: what `jvp` does by itself from 0.6.0."""
    p, t = inputs(env)

    def body(p, t):
        return jax.jvp(mean_cube, (env.compat.pvary(p, "x"),), (t,))[1][None]

    fn = mapped(env, body, (P(), P("x")), P("x"))
    return Program(fn, args=(p, t), reference=directional)


def directional(p, t):
    """Return p^2 . t for each shard's tangents, in float64."""
    return np.asarray(t, np.float64).reshape(SHARDS, 3) @ np.asarray(p, np.float64) ** 2
