"""Refusals of the checker, with the messages that people search for.

The reference is the refusal if the program is wrong. If the program is right and the checker
refuses it only for its types, the reference is the numbers, and each deviation says what to add.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program, raises
from conformance.kit.endings import refusal

from ._helpers import map_over_x, ramp

defaults(devices=4, platforms=("cpu",))


@program(
    source="jax-ml/jax@7c0e68a5e8fd", params={"one": {"tree": False}, "in_a_tree": {"tree": True}}
)
def out_specs_of_a_shard(env, tree):
    """`out_specs=P()` for shards that differ is refused.

    The message is "require replication which can't be statically inferred". It ends with the switch
    that turns the check off: `check_rep=False`, from 0.6.1 `check_vma=False`. That is seldom the
    right fix: usually a psum or a `P("x")` was forgotten.
    """

    def step(u):
        return {"total": lax.psum(u, "x"), "own": u} if tree else u

    refused = raises("ValueError", match="require replication which can't be statically inferred")
    return Program(map_over_x(env, step, P("x"), P()), args=(ramp(),), reference=refused)


LEAVES_COUNTED_WITHOUT_JIT = deviation(
    "jax>=0.6,<0.9.1",
    params=["jvp"],
    outcome="ok",
    match="PyTreeDef",
    reason="the message of the error was built for other outputs, which failed",
)
LEAVES_COUNTED_UNDER_JIT = deviation(
    "jax>=0.6,<0.9.2",
    params=["jitted_jvp"],
    outcome="ok",
    match="PyTreeDef",
    reason="the message of the error was built for other outputs, which failed",
)
LEAVES_COUNTED_AGAIN = deviation(
    "jax>=0.11",
    params=["jitted_jvp", "jitted_vmap"],
    outcome="ok",
    match="PyTreeDef",
    reason="the message of the error was built for other outputs, which failed",
)
TRANSFORMS = {
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "jitted_jvp": lambda f: jax.jit(lambda x: jax.jvp(f, (x,), (x,))),
    "vmap": lambda f: lambda x: jax.vmap(f)(x[None]),
    "jitted_vmap": lambda f: jax.jit(lambda x: jax.vmap(f)(x[None])),
}


@probe(
    source="jax-ml/jax@7c0e68a5e8fd",
    params=[*TRANSFORMS],
    deviations=[LEAVES_COUNTED_WITHOUT_JIT, LEAVES_COUNTED_UNDER_JIT, LEAVES_COUNTED_AGAIN],
)
def transformed_with_wrong_out_specs(env, name):
    """`out_specs=P()` for shards that differ is refused under jvp and vmap too.

    From 0.6.0 some transformations hide the message behind "Too many leaves for PyTreeDef" or "Too
    few leaves for PyTreeDef". Call the function without them to see it.
    """
    call = TRANSFORMS[name](map_over_x(env, jnp.sin, P("x"), P()))
    words = ("require replication", "leaves for PyTreeDef")
    return Observed(
        refusal(lambda: call(ramp()), *words), reference="ValueError: require replication"
    )


AXIS_NOT_VALIDATED = deviation(
    "jax<0.6.1",
    params=["in_axis"],
    error="KeyError",
    match="z",
    reason="shard_map looked up the name in the mesh without a check",
    issue="jax-ml/jax@e89628221948",
)


@program(
    source="jax-ml/jax@7c0e68a5e8fd",
    params={"too_long": {"out": "scalar"}, "in_size": {"out": "size"}, "in_axis": {"out": "axis"}},
    deviations=[AXIS_NOT_VALIDATED],
)
def specs_that_do_not_fit(env, out):
    """Overlong specs, sizes that do not divide, and axes that the mesh lacks are refused."""
    fn, size, words = {
        "scalar": (map_over_x(env, lambda u: u.sum()), 8, "out_specs entry which is too long"),
        "size": (map_over_x(env, lambda u: u), 6, "not evenly divisible by the corresponding mesh"),
        "axis": (None, 8, "in_specs.*(refers to|must refer to)"),
    }[out]
    if fn is None:
        return Program(
            lambda u: map_over_x(env, lambda v: v, P("z"))(u),  # noqa: PLW0108 - build the map while tracing
            args=(ramp(),),
            reference=raises("ValueError", match=words),
        )
    return Program(fn, args=(ramp(size),), reference=raises("ValueError", match=words))


NO_RULE_FOR_COND = deviation(
    "jax<0.4.36",
    error="NotImplementedError",
    match="No replication rule for cond",
    reason="the check had no rule for cond",
    issue="jax-ml/jax@dfabcb027d62",
)
REPLICATED_BRANCH_UNMARKED = deviation(
    "jax>=0.6",
    params=["bare"],
    error="TypeError",
    match="cond branches must have equal output types but they differ",
    reason="by design: the branch that is the same everywhere must be marked",
    issue="jax-ml/jax#27903",
)


@program(
    source="jax-ml/jax#27903",
    params={"bare": {"mark": False}, "marked": {"mark": True}},
    deviations=[NO_RULE_FOR_COND, REPLICATED_BRANCH_UNMARKED],
)
def branches_of_cond(env, mark):
    """A cond whose branches return a shard and zeros: their types differ from 0.6.0 on.

    The message also suggests that a cast over no axes, `pcast(..., ())`, of the wrong branch might
    fix it; the actual fix is a cast of the zeros over `x`.
    """

    def step(u):
        zeros = jnp.zeros(u.shape, u.dtype)
        other = env.compat.pvary(zeros, "x") if mark else zeros
        return lax.cond(u[0] > 3, lambda: u, lambda: other)

    return Program(map_over_x(env, step), args=(ramp(),), reference=lambda u: u * (u > 3))


COTANGENT_DOES_NOT_VARY = deviation(
    "jax>=0.6",
    params=["vjp"],
    error="ValueError",
    match="unexpected JAX type .* for argument to (vjp|VJP) function",
    reason="a cotangent must vary like its output",
    issue="jax-ml/jax@84016bc3682e",
)
TANGENT_DOES_NOT_VARY = deviation(
    "jax>=0.6",
    params=["linearize"],
    error="ValueError",
    match="linearized function called on tangent values inconsistent",
    reason="a tangent must vary like its primal",
    issue="jax-ml/jax@5da3fe60d1a9",
)


@program(
    source="jax-ml/jax@5da3fe60d1a9",
    params={"vjp": {"how": "vjp"}, "linearize": {"how": "linearize"}, "jvp": {"how": "jvp"}},
    deviations=[COTANGENT_DOES_NOT_VARY, TANGENT_DOES_NOT_VARY],
)
def tangents_of_ones(env, how):
    """`ones` as the (co)tangent of a shard is refused by vjp and linearize from 0.6.0, not by jvp.

    Write `jnp.ones_like(y)`, which varies like its argument from 0.7.0.
    """

    def step(u):
        ones = jnp.ones(u.shape, u.dtype)
        if how == "vjp":
            return jax.vjp(lambda v: v * v, u)[1](ones)[0]
        if how == "linearize":
            return jax.linearize(lambda v: v * v, u)[1](ones)
        return jax.jvp(lambda v: v * v, (u,), (ones,))[1]

    return Program(map_over_x(env, step), args=(ramp(),), reference=lambda u: 2 * u)


GRAD_STARTED_FROM_ONES = deviation(
    "jax>=0.6,<0.6.1",
    error="ValueError",
    match="unexpected JAX type .* for argument to vjp function",
    reason="grad itself started from ones that did not vary",
    issue="jax-ml/jax#28193",
)
BACKWARD_RESULT_DOES_NOT_VARY = deviation(
    "jax>=0.8.2",
    params=["ones"],
    error="ValueError",
    match="Custom VJP bwd rule .*must produce an output with the same type",
    reason="the result of a backward rule must vary like its argument",
    issue="jax-ml/jax@27d29b9d205a",
)


@program(
    source="jax-ml/jax@27d29b9d205a",
    params={"ones": {"like": False}, "ones_like": {"like": True}},
    deviations=[GRAD_STARTED_FROM_ONES, BACKWARD_RESULT_DOES_NOT_VARY],
)
def backward_rule_that_returns_ones(env, like):
    """A custom_vjp whose backward pass returns constant ones is refused from 0.8.2."""

    @jax.custom_vjp
    def straight_through(v):
        return jnp.round(v)

    def backward(v, _):
        return (jnp.ones_like(v) if like else jnp.ones(2),)

    straight_through.defvjp(lambda v: (jnp.round(v), v), backward)

    def step(u):
        return jax.grad(lambda v: straight_through(v).sum())(u)

    return Program(map_over_x(env, step), args=(ramp(),), reference=np.ones_like)


OPERATIONS = {
    "inverse": lambda u: jnp.linalg.inv(u + 9 * jnp.eye(2)),
    "gamma": lambda u: jax.random.gamma(jax.random.key(0), u + 1) > 0,
    "betainc": lambda u: jnp.round(16 * jax.scipy.special.betainc(1.0, 1.0, u / 16)),
    "full_like": lambda u: jnp.full_like(u, u[0, 0]) + u,
    "top_k": lambda u: lax.top_k(u, 1)[0] + 0 * u,
}


def compute_by_numpy(name):
    """Compute the result of an operation on all shards, eight by two, in NumPy."""
    shards = ramp(16).reshape(4, 2, 2).astype(np.float64)
    return {
        "inverse": lambda: np.concatenate([np.linalg.inv(s + 9 * np.eye(2)) for s in shards]),
        "gamma": lambda: np.ones((8, 2), bool),
        "betainc": lambda: ramp(16).reshape(8, 2),
        "full_like": lambda: np.concatenate([s + s[0, 0] for s in shards]),
        "top_k": lambda: np.concatenate([s.max(1, keepdims=True) + 0 * s for s in shards]),
    }[name]()


NO_RULE_FOR_LINEAR_SOLVE = deviation(
    "jax<0.4.31",
    params=["inverse"],
    error="NotImplementedError",
    match="No replication rule for custom_linear_solve",
    reason="the check had no rule for custom_linear_solve",
    issue="jax-ml/jax@173794bcef43",
)
FACTORS_NOT_MARKED = deviation(
    "jax>=0.6,<0.7",
    params=["inverse"],
    error="TypeError",
    match="cotangent type does not match function output",
    reason="the factors were not marked as varying",
    issue="jax-ml/jax#30157",
)
GAMMA_LOOP_STARTS_FROM_CONSTANT = deviation(
    "jax>=0.6,<0.7.1",
    params=["gamma"],
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="a loop in the operation starts from a constant",
    issue="jax-ml/jax#31080",
)
GAMMA_KEY_MUST_VARY = deviation(
    "jax>=0.7.1",
    params=["gamma"],
    error="TypeError|ValueError",
    match="gamma requires all arguments to have matching type",
    reason="by design: where the gamma shape varies, the key must be marked as varying, and differ",
    issue="jax-ml/jax#31080",
)
BETAINC_LOOP_STARTS_FROM_CONSTANT = deviation(
    "jax>=0.6,<0.12",
    params=["betainc"],
    error="TypeError",
    match="carry input and carry output must have equal types",
    reason="a loop in the operation starts from a constant",
    issue="jax-ml/jax#27903",
)
VARYING_FILL_MARKED_TWICE = deviation(
    "jax>=0.7,<0.10",
    params=["full_like"],
    error="ValueError",
    match="pvary",
    reason="full_like marked a varying fill value a second time",
    issue="jax-ml/jax#36365",
)


@probe(
    source="jax-ml/jax#30157",
    params={
        "inverse": {"name": "inverse"},
        "gamma": {"name": "gamma"},
        "betainc": {"name": "betainc"},
        "full_like": {"name": "full_like"},
        "top_k": {"name": "top_k"},
    },
    deviations=[
        NO_RULE_FOR_LINEAR_SOLVE,
        FACTORS_NOT_MARKED,
        GAMMA_LOOP_STARTS_FROM_CONSTANT,
        GAMMA_KEY_MUST_VARY,
        BETAINC_LOOP_STARTS_FROM_CONSTANT,
        VARYING_FILL_MARKED_TWICE,
    ],
)
def operations_under_the_check(env, name):
    """Functions that start from internal constants were refused, each in other releases.

    Where a function is still refused, turn the check off for it, in a separate `shard_map`.
    """
    result = jax.jit(map_over_x(env, OPERATIONS[name]))(ramp(16).reshape(8, 2))
    return Observed(result, compute_by_numpy(name))
