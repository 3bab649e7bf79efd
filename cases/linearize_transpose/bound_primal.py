"""Linearize at a bound primal and transpose the tangent map, all inside shard_map.

Matrix-free methods get J and J^T at one point from the pair `linearize` + `linear_transpose`
(Gauss-Newton, Fisher-vector products). Often the point is the same on every shard, while the
tangents are not. Up to 0.5.3 this was accepted. From 0.6.0 the type of a value inside shard_map
includes the mesh axes over which it varies, and a tangent must have the type of its primal: a
varying tangent at a replicated point is refused. On every release, code that marks the point as
varying before it linearizes states what it means.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from conformance.kit import Program, defaults, deviation, program

from ._helpers import SHARDS, map_over_x

defaults(devices=4)


def mean_cube(p):
    """Return the mean of the cubes of three numbers: its gradient is `p ** 2`."""
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


VARYING_TANGENT_AT_REPLICATED_POINT = deviation(
    "jax>=0.6",
    params=["check_on"],
    error="ValueError",
    match="tangent values inconsistent with the original primal values",
    reason="the tangent varies over x, but the point does not",
    issue="jax-ml/jax#28260",
)


@program(
    source="jax-ml/jax#28260",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[VARYING_TANGENT_AT_REPLICATED_POINT],
)
def closed_over(env, check):
    """The mapped function closes over the point at which it linearizes: a constant.

    This is the program of the report.
    """
    p, t = inputs(env)
    fn = map_over_x(env, lambda t: there_and_back(p, t), P("x"), P("x"), check=check)
    return Program(fn, args=(t,), reference=lambda t: exact(p, t))


@program(
    source="jax-ml/jax#28260",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[VARYING_TANGENT_AT_REPLICATED_POINT],
)
def passed_replicated(env, check):
    """A point passed with `P()` is, to the types, the same as a constant."""
    p, t = inputs(env)
    fn = map_over_x(env, there_and_back, (P(), P("x")), P("x"), check=check)
    return Program(fn, args=(p, t), reference=exact)


@program(source="jax-ml/jax#28260")
def passed_sharded(env):
    """A point with a copy on each shard varies as the tangents do, and all releases agree."""
    p, t = inputs(env)
    fn = map_over_x(env, there_and_back, (P("x"), P("x")), P("x"))
    return Program(fn, args=(np.tile(p, SHARDS), t), reference=lambda _, t: exact(p, t))


@program(source="jax-ml/jax#28260", facts={"collectives": {}})
def point_made_varying(env):
    """Marking the replicated point as varying is the remedy; it costs no communication."""
    p, t = inputs(env)

    def body(p, t):
        return there_and_back(env.compat.pvary(p, "x"), t)

    fn = map_over_x(env, body, (P(), P("x")), P("x"))
    return Program(fn, args=(p, t), reference=exact)


@program(source="jax-ml/jax#28260")
def replicated_tangent(env):
    """A replicated tangent at a replicated point is accepted: their types agree.

    No collective is needed.
    """
    p, t = inputs(env)
    fn = map_over_x(env, there_and_back, (P(), P()), P())
    return Program(fn, args=(p, t[:3]), reference=lambda p, t: exact(p, np.tile(t, SHARDS))[:3])


@program(source="jax-ml/jax#28260")
def jvp_varying_tangent(env):
    """`jvp` accepts the varying tangent that linearize refuses.

    It returns a directional derivative for each shard at one point.
    """
    p, t = inputs(env)

    def body(p, t):
        return jax.jvp(mean_cube, (p,), (t,))[1][None]

    fn = map_over_x(env, body, (P(), P("x")), P("x"))
    return Program(fn, args=(p, t), reference=directional_derivatives)


@program(source="jax-ml/jax#28260")
def jvp_made_varying(env):
    """Marking the point gives the same derivative; from 0.6.0 `jvp` does so by itself."""
    p, t = inputs(env)

    def body(p, t):
        return jax.jvp(mean_cube, (env.compat.pvary(p, "x"),), (t,))[1][None]

    fn = map_over_x(env, body, (P(), P("x")), P("x"))
    return Program(fn, args=(p, t), reference=directional_derivatives)


def directional_derivatives(p, t):
    """Return p^2 . t for each shard's tangents, in float64."""
    return np.asarray(t, np.float64).reshape(SHARDS, 3) @ np.asarray(p, np.float64) ** 2
