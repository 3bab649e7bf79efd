"""What the checker refuses, and in which words: the messages that people search for.

References are the refusals where a program is wrong, and the numbers where it is right and the
checker refuses it for its types alone; there each deviation says what to add.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program, raises

from ._helpers import mapped, ramp


@program(
    source="jax-ml/jax@7c0e68a5e8fd",
    devices=4,
    platforms=("cpu",),
    params={"one": {"tree": False}, "in_a_tree": {"tree": True}},
)
def out_specs_of_a_shard(env, tree):
    """`out_specs=P()` for what differs: "require replication which can't be statically inferred".

    The message ends with the switch that turns the check off: `check_rep=False`, from 0.6.1
    `check_vma=False`. It is seldom what is meant: a psum or a `P("x")` was forgotten.
    """

    def step(u):
        return {"total": lax.psum(u, "x"), "own": u} if tree else u

    refusal = raises("ValueError", match="require replication which can't be statically inferred")
    return Program(mapped(env, step, P("x"), P()), args=(ramp(),), reference=refusal)


@program(
    source="jax-ml/jax@7c0e68a5e8fd",
    devices=4,
    platforms=("cpu",),
    params={"too_long": {"out": "scalar"}, "in_size": {"out": "size"}, "in_axis": {"out": "axis"}},
    deviations=[
        deviation(
            "jax<0.6.1",
            params=["in_axis"],
            error="KeyError",
            match="z",
            reason="the name was looked up in the mesh without a check",
            issue="jax-ml/jax@e89628221948",
        )
    ],
)
def specs_that_do_not_fit(env, out):
    """Specs longer than a result, sizes that do not divide, an axis the mesh has not."""
    fn, size, words = {
        "scalar": (mapped(env, lambda u: u.sum()), 8, "out_specs entry which is too long"),
        "size": (mapped(env, lambda u: u), 6, "not evenly divisible by the corresponding mesh"),
        "axis": (None, 8, "in_specs.*(refers to|must refer to)"),
    }[out]
    if fn is None:
        return Program(
            lambda u: mapped(env, lambda v: v, P("z"))(u),  # noqa: PLW0108 - made when traced
            args=(ramp(),),
            reference=raises("ValueError", match=words),
        )
    return Program(fn, args=(ramp(size),), reference=raises("ValueError", match=words))


@program(
    source="jax-ml/jax#27903",
    devices=4,
    platforms=("cpu",),
    params={"bare": {"mark": False}, "marked": {"mark": True}},
    deviations=[
        deviation(
            "jax<0.4.36",
            error="NotImplementedError",
            match="No replication rule for cond",
            reason="the check had no rule for cond",
            issue="jax-ml/jax@dfabcb027d62",
        ),
        deviation(
            "jax>=0.6",
            params=["bare"],
            error="TypeError",
            match="cond branches must have equal output types but they differ",
            reason="by design: the branch that is the same everywhere must be marked",
            issue="jax-ml/jax#27903",
        ),
    ],
)
def branches_of_cond(env, mark):
    """One branch returns its shard, the other zeros: their types differ from 0.6.0 on.

    The message goes on that a cast over no axes, `pcast(..., ())`, of the wrong branch might fix
    it; what does is the cast over `x` of the zeros.
    """

    def step(u):
        zeros = jnp.zeros(u.shape, u.dtype)
        other = env.compat.pvary(zeros, "x") if mark else zeros
        return lax.cond(u[0] > 3, lambda: u, lambda: other)

    return Program(mapped(env, step), args=(ramp(),), reference=lambda u: u * (u > 3))


@program(
    source="jax-ml/jax@5da3fe60d1a9",
    devices=4,
    platforms=("cpu",),
    params={"vjp": {"how": "vjp"}, "linearize": {"how": "linearize"}, "jvp": {"how": "jvp"}},
    deviations=[
        deviation(
            "jax>=0.6",
            params=["vjp"],
            error="ValueError",
            match="unexpected JAX type .* for argument to (vjp|VJP) function",
            reason="a cotangent must vary like its output",
            issue="jax-ml/jax@84016bc3682e",
        ),
        deviation(
            "jax>=0.6",
            params=["linearize"],
            error="ValueError",
            match="linearized function called on tangent values inconsistent",
            reason="a tangent must vary like its primal",
            issue="jax-ml/jax@5da3fe60d1a9",
        ),
    ],
)
def tangents_of_ones(env, how):
    """`ones` as the (co)tangent of a shard: refused by vjp and linearize from 0.6.0, not by jvp.

    Write `jnp.ones_like(y)`, which varies like its argument from 0.7.0.
    """

    def step(u):
        ones = jnp.ones(u.shape, u.dtype)
        if how == "vjp":
            return jax.vjp(lambda v: v * v, u)[1](ones)[0]
        if how == "linearize":
            return jax.linearize(lambda v: v * v, u)[1](ones)
        return jax.jvp(lambda v: v * v, (u,), (ones,))[1]

    return Program(mapped(env, step), args=(ramp(),), reference=lambda u: 2 * u)


@program(
    source="jax-ml/jax@27d29b9d205a",
    devices=4,
    platforms=("cpu",),
    params={"ones": {"like": False}, "ones_like": {"like": True}},
    deviations=[
        deviation(
            "jax>=0.6,<0.6.1",
            error="ValueError",
            match="unexpected JAX type .* for argument to vjp function",
            reason="grad itself started from ones that did not vary",
            issue="jax-ml/jax#28193",
        ),
        deviation(
            "jax>=0.8.2",
            params=["ones"],
            error="ValueError",
            match="Custom VJP bwd rule .*must produce an output with the same type",
            reason="what a backward rule returns must vary like its argument",
            issue="jax-ml/jax@27d29b9d205a",
        ),
    ],
)
def backward_rule_that_returns_ones(env, like):
    """A custom_vjp whose backward pass returns constant ones: refused from 0.8.2."""

    @jax.custom_vjp
    def straight_through(v):
        return jnp.round(v)

    def backward(v, _):
        return (jnp.ones_like(v) if like else jnp.ones(2),)

    straight_through.defvjp(lambda v: (jnp.round(v), v), backward)

    def step(u):
        return jax.grad(lambda v: straight_through(v).sum())(u)

    return Program(mapped(env, step), args=(ramp(),), reference=np.ones_like)


OPERATIONS = {
    "inverse": lambda u: jnp.linalg.inv(u + 9 * jnp.eye(2)),
    "gamma": lambda u: jax.random.gamma(jax.random.key(0), u + 1) > 0,
    "betainc": lambda u: jnp.round(16 * jax.scipy.special.betainc(1.0, 1.0, u / 16)),
    "full_like": lambda u: jnp.full_like(u, u[0, 0]) + u,
    "top_k": lambda u: lax.top_k(u, 1)[0] + 0 * u,
}


def by_numpy(name):
    """Return what an operation computes of all shards, eight by two, by NumPy."""
    shards = ramp(16).reshape(4, 2, 2).astype(np.float64)
    return {
        "inverse": lambda: np.concatenate([np.linalg.inv(s + 9 * np.eye(2)) for s in shards]),
        "gamma": lambda: np.ones((8, 2), bool),
        "betainc": lambda: ramp(16).reshape(8, 2),
        "full_like": lambda: np.concatenate([s + s[0, 0] for s in shards]),
        "top_k": lambda: np.concatenate([s.max(1, keepdims=True) + 0 * s for s in shards]),
    }[name]()


@probe(
    source="jax-ml/jax#30157",
    devices=4,
    platforms=("cpu",),
    params={
        "inverse": {"name": "inverse"},
        "gamma": {"name": "gamma"},
        "betainc": {"name": "betainc"},
        "full_like": {"name": "full_like"},
        "top_k": {"name": "top_k"},
    },
    deviations=[
        deviation(
            "jax<0.4.31",
            params=["inverse"],
            error="NotImplementedError",
            match="No replication rule for custom_linear_solve",
            reason="the check had no rule for it",
            issue="jax-ml/jax@173794bcef43",
        ),
        deviation(
            "jax>=0.6,<0.7",
            params=["inverse"],
            error="TypeError",
            match="cotangent type does not match function output",
            reason="the factors were not marked as varying",
            issue="jax-ml/jax#30157",
        ),
        deviation(
            "jax>=0.6,<0.7.1",
            params=["gamma"],
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="a loop in it starts from a constant",
            issue="jax-ml/jax#31080",
        ),
        deviation(
            "jax>=0.7.1",
            params=["gamma"],
            error="TypeError|ValueError",
            match="gamma requires all arguments to have matching type",
            reason="by design: the key must be marked as varying, and differ, where its shape does",
            issue="jax-ml/jax#31080",
        ),
        deviation(
            "jax>=0.6,<0.12",
            params=["betainc"],
            error="TypeError",
            match="carry input and carry output must have equal types",
            reason="a loop in it starts from a constant",
            issue="jax-ml/jax#27903",
        ),
        deviation(
            "jax>=0.7,<0.10",
            params=["full_like"],
            error="ValueError",
            match="pvary",
            reason="a fill that varies was marked a second time",
            issue="jax-ml/jax#36365",
        ),
    ],
)
def operations_under_the_check(env, name):
    """Functions that start from constants of their own, and so were refused: each has its date.

    Where one is refused still, turn the check off for it, in a `shard_map` of its own.
    """
    got = jax.jit(mapped(env, OPERATIONS[name]))(ramp(16).reshape(8, 2))
    return Observed(got, by_numpy(name))
