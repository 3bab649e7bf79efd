"""`fori_loop` inside `shard_map`: a scan when its length is known, a while when it is not.

The two have had different replication rules and still have different derivatives, so the same
line of a program changes its behaviour when the trip count is no longer a Python number.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from conformance.kit import Program, defaults, deviation, program

from ._helpers import CELLS, SHARDS, P, from_left, upwind, wave

defaults(devices=4)


NO_RULE_FOR_WHILE_OR_PMAX = deviation(
    "jax<0.6",
    params=("argument", "reduced"),
    error="NotImplementedError",
    match="No replication rule for (while|pmax)",
    reason="a trip count that is not a constant makes the loop a while, which had no rule",
    issue="jax-ml/jax#27664",
)
LOOP_SHARDINGS_REFUSED = deviation(
    "jax<0.4.33",
    params=("argument_check_off", "reduced_check_off"),
    error="XlaRuntimeError",
    match="Inconsistent while sharding among instructions",
    reason="lowering gave parts of the loop shardings that XLA's verifier took to be inconsistent",
    issue="PRONTOLab/GB-25#258",
)


@program(
    source="jax-ml/jax#27664",
    params={
        "constant": {"count": "constant", "check": True},
        "argument": {"count": "argument", "check": True},
        "reduced": {"count": "reduced", "check": True},
        "argument_check_off": {"count": "argument", "check": False},
        "reduced_check_off": {"count": "reduced", "check": False},
    },
    deviations=[NO_RULE_FOR_WHILE_OR_PMAX, LOOP_SHARDINGS_REFUSED],
)
def trip_count(env, count, check):
    """Five explicit steps, where five is a constant, an argument, or a `pmax` over shards.

    Only the constant makes a scan, and under jit only the constant passed the check up to 0.5.3.
    The error mentioned `while` to users who had written none. With the check off, 0.4.30 and 0.4.31
    reached XLA, whose verifier refused the shardings of the loop.
    """

    def run(u, wanted):
        if count == "constant":
            n = 5
        else:
            n = lax.pmax(wanted[0], "x") if count == "reduced" else wanted[0]
        return lax.fori_loop(0, n, lambda _, u: upwind(u, from_left(u), 0.005), u)

    def numpy_run(u, _):
        u = np.asarray(u, np.float64)
        for _ in range(5):
            u = upwind(u, np.roll(u, 1), 0.005)
        return u.astype(np.float32)

    counts = np.int32([2, 5, 3, 1] if count == "reduced" else [5])
    mapped_fn = env.compat.shard_map(
        run,
        mesh=env.mesh(SHARDS, "x"),
        in_specs=(P("x"), P("x") if count == "reduced" else P()),
        out_specs=P("x"),
        check=check,
    )
    return Program(mapped_fn, args=(wave(env), counts), reference=numpy_run)


NO_RULE_FOR_WHILE_UNDER_CHECK = deviation(
    "jax<0.6",
    params=("check_on",),
    error="NotImplementedError",
    match="No replication rule for while",
    reason="a trip count that is not a constant makes the loop a while, which had no rule",
    issue="jax-ml/jax#27664",
)
LOOP_SHARDINGS_REFUSED_UNCHECKED = deviation(
    "jax<0.4.33",
    params=("check_off",),
    error="XlaRuntimeError",
    match="Inconsistent while sharding among instructions",
    reason="lowering gave parts of the loop shardings that XLA's verifier took to be inconsistent",
    issue="PRONTOLab/GB-25#258",
)


@program(
    source="jax-ml/jax#27664",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_WHILE_UNDER_CHECK, LOOP_SHARDINGS_REFUSED_UNCHECKED],
)
def count_of_each_shard(env, check):
    """Every shard multiplies by its own number of factors; nothing communicates in the loop."""
    mapped_fn = env.compat.shard_map(
        lambda u, n: lax.fori_loop(0, n[0], lambda _, u: u * 1.5, u),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=(P("x"), P("x")),
        out_specs=P("x"),
        check=check,
    )
    counts = np.int32([3, 0, 1, 6])
    return Program(
        mapped_fn,
        args=(wave(env), counts),
        reference=lambda u, n: (u * 1.5 ** np.repeat(n, CELLS // SHARDS)).astype(np.float32),
    )


NO_RULE_FOR_WHILE = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="No replication rule for while",
    reason="a trip count that is not a constant makes the loop a while, which had no rule",
    issue="jax-ml/jax#27664",
)


@program(source="jax-ml/jax#27664", deviations=[NO_RULE_FOR_WHILE])
def no_iterations(env):
    """A trip count of zero returns the carry unchanged, and no shard waits for another."""
    mapped_fn = env.compat.shard_map(
        lambda u, n: lax.fori_loop(0, n, lambda _, u: u + lax.pmean(u, "x"), u),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=(P("x"), P()),
        out_specs=P("x"),
    )
    return Program(mapped_fn, args=(wave(env), np.int32(0)), reference=lambda u, _: u)


def fourth_power(u):
    """Return u**4 by a loop of known length, which has a reverse-mode derivative."""
    return lax.fori_loop(0, 3, lambda _, power: power * u, u)


PSUM_TRANSPOSED_TO_PSUM = deviation(
    "jax<0.6",
    params=("check_on",),
    outcome="ok",
    reason="psum was transposed to psum: the gradient was multiplied by the number of shards",
    issue="jax-ml/jax#3970",
)
PSUM_TRANSPOSED_UNCHECKED = deviation(
    params=("check_off",),
    outcome="ok",
    reason="without the check psum is transposed to psum: multiplied by the number of shards",
    issue="jax-ml/jax#3970",
)


@program(
    source="jax-ml/jax#3970",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[PSUM_TRANSPOSED_TO_PSUM, PSUM_TRANSPOSED_UNCHECKED],
)
def gradient_inside(env, check):
    """The gradient, taken inside shard_map, of a `psum` of the result of a loop of known length.

    The global loss is the sum of u**4 over all cells, so the derivative by a cell is 4 u**3. From
    0.6.0 on, with the check on, the gradient is right. Up to 0.5.3, and on all releases with the
    check off, it is four times as large on four shards: `psum` is its own transpose there, so the
    unit cotangents of all shards are added. There is no error and no warning: the factor scales the
    learning rate.
    """

    def loss(u):
        return lax.psum(jnp.sum(fourth_power(u)), "x")

    mapped_fn = env.compat.shard_map(
        jax.grad(loss),
        mesh=env.mesh(SHARDS, "x"),
        in_specs=P("x"),
        out_specs=P("x"),
        check=check,
    )
    return Program(mapped_fn, args=(wave(env),), reference=lambda u: 4 * u**3)


INSERTED_PSUM_NOT_BATCHED = deviation(
    "jax>=0.8.1,<0.9",
    params=("check_on",),
    outcome="ok",
    match="same_as vmap_of_one: raised TypeError: .*'axis_index_groups'",
    platform="cpu",
    reason="the inserted psum cannot be batched",
    issue="jax-ml/jax#34249",
)


@program(
    source="jax-ml/jax#3970",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    same_as=("jit", "aot", "vmap_of_one", "unsharded"),
    deviations=[INSERTED_PSUM_NOT_BATCHED],
)
def gradient_outside(env, check):
    """The same gradient taken outside is right.

    With the check on, it cannot be batched on 0.8.1 to 0.8.3.
    """

    def loss(u):
        return env.compat.shard_map(
            lambda u: lax.psum(jnp.sum(fourth_power(u)), "x"),
            mesh=env.mesh(SHARDS, "x"),
            in_specs=P("x"),
            out_specs=P(),
            check=check,
        )(u)

    return Program(jax.grad(loss), args=(wave(env),), reference=lambda u: 4 * u**3)


@program(
    source="jax-ml/jax#27803",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[NO_RULE_FOR_WHILE_UNDER_CHECK, LOOP_SHARDINGS_REFUSED_UNCHECKED],
)
def tangent_of_dynamic_count(env, check):
    """Forward mode through a loop of unknown length, with a reduction in the body.

    A while has no reverse mode, but its tangents are part of the carry: they, too, must start as
    varying and remain varying.
    """

    def run(u, n):
        return lax.fori_loop(0, n, lambda _, u: u * lax.pmean(jnp.mean(u), "x"), u)

    def tangent(u, v, n):
        mapped_fn = env.compat.shard_map(
            run, mesh=env.mesh(SHARDS, "x"), in_specs=(P("x"), P()), out_specs=P("x"), check=check
        )
        return jax.jvp(lambda u: mapped_fn(u, n), (u,), (v,))[1]

    def numpy_tangent(u, v, n):
        u, v = np.asarray(u, np.float64), np.asarray(v, np.float64)
        for _ in range(n):
            u, v = u * u.mean(), v * u.mean() + u * v.mean()
        return v.astype(np.float32)

    u = wave(env) / 2
    return Program(tangent, args=(u, u[::-1].copy(), np.int32(3)), reference=numpy_tangent)
