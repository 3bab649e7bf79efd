"""What the check is for: refusing `out_specs=P()` for a value that differs between shards.

`out_specs=P()` says "equal everywhere, take any". Where that is false shard_map returns one
shard's value, silently. A loop is where the type system is easiest to fool: what differs may be
neither in the carry's start nor in the body, only in how often the body ran.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from conformance.kit import Program, deviation, program, raises

from ._helpers import SHARDS, P, stable_step, wave


@program(
    source="jax-ml/jax#27664",
    devices=4,
    deviations=[
        deviation(
            "jax<0.6",
            error="NotImplementedError",
            match="No replication rule for while",
            reason="refused, but for another reason: the check knew no while",
            issue="jax-ml/jax#27664",
        )
    ],
)
def local_clock_as_global(env):
    """A clock that advances by each shard's own step, claimed to be replicated: a ValueError.

    The bug the check exists for: the `pmin` was forgotten.
    """

    def run(u):
        start = env.compat.pvary(jnp.float32(0), "x")
        return lax.while_loop(lambda t: t < 0.1, lambda t: t + stable_step(u), start)

    mapped = env.compat.shard_map(run, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P())
    return Program(mapped, args=(wave(env),), reference=raises("ValueError", match="out_specs"))


@program(
    source="jax-ml/jax#40823",
    devices=4,
    params={"while": {"dynamic": False}, "fori": {"dynamic": True}},
    deviations=[
        deviation(
            "jax<0.6",
            error="NotImplementedError",
            match="No replication rule for while",
            reason="refused, but for another reason: the check knew no while",
            issue="jax-ml/jax#27664",
        ),
        deviation(
            "jax>=0.6",
            outcome="ok",
            reason="the types see what the body computes, not how often it ran: accepted silently",
            issue="jax-ml/jax#40823",
        ),
        deviation(
            "jax>=0.6",
            error="RanksDiffer",
            match="value: out",
            platform="cpu-mp",
            reason="accepted silently; of what is claimed to be one value each process has another",
            issue="jax-ml/jax#40823",
        ),
    ],
)
def count_of_local_condition(env, dynamic):
    """The number of iterations of a loop whose condition differs between shards.

    Counting starts at a constant and adds a constant, so the counter is typed as replicated;
    yet each shard stops when its own cells say so. It should not pass as `P()`. It does: the
    result is one shard's count. jax#40823 tells the same of `cond` with a condition that
    varies. Until this is refused, reduce whatever a loop's condition depends on, or mark the
    counter as varying.
    """

    def run(u):
        limit = (10 * u[0]).astype(jnp.int32)
        if dynamic:
            return lax.fori_loop(0, limit, lambda _, count: count + 1, 0)
        return lax.while_loop(lambda count: count < limit, lambda count: count + 1, 0)

    mapped = env.compat.shard_map(run, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P())
    return Program(
        mapped, args=(wave(env),), reference=raises("ValueError|TypeError", match="out_specs|var")
    )
