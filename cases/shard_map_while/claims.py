"""The purpose of the check: it refuses `out_specs=P()` for a value that differs between shards.

`out_specs=P()` claims that a value is equal on all shards, so that any of them can be taken. If
the claim is false, shard_map silently returns the value of one shard. The type system is easiest
to fool in a loop: the difference may be neither in the start of the carry nor in the body, only
in how often the body ran.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from conformance.kit import Program, deviation, program, raises

from ._helpers import SHARDS, P, stable_step, wave

REFUSED_WITHOUT_WHILE_RULE = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="No replication rule for while",
    reason="refused for another reason: the replication check had no rule for while",
    issue="jax-ml/jax#27664",
)


@program(source="jax-ml/jax#27664", devices=4, deviations=[REFUSED_WITHOUT_WHILE_RULE])
def local_clock_as_global(env):
    """A clock that advances by the step of each shard, claimed to be replicated, is a ValueError.

    This is the bug that the check exists for: the `pmin` was forgotten.
    """

    def run(u):
        start = env.compat.pvary(jnp.float32(0), "x")
        return lax.while_loop(lambda t: t < 0.1, lambda t: t + stable_step(u), start)

    mapped_fn = env.compat.shard_map(
        run, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P()
    )
    return Program(mapped_fn, args=(wave(env),), reference=raises("ValueError", match="out_specs"))


TRIP_COUNT_NOT_IN_TYPE = deviation(
    "jax>=0.6",
    outcome="ok",
    reason="the types depend on the body, not on how often it ran: accepted silently",
    issue="jax-ml/jax#40823",
)
PROCESSES_RETURN_DIFFERENT_VALUES = deviation(
    "jax>=0.6",
    error="RanksDiffer",
    match="value: out",
    platform="cpu-mp",
    reason="accepted silently; the claim is one value, but each process has a different value",
    issue="jax-ml/jax#40823",
)


@program(
    source="jax-ml/jax#40823",
    devices=4,
    params={"while": {"dynamic": False}, "fori": {"dynamic": True}},
    deviations=[
        REFUSED_WITHOUT_WHILE_RULE,
        TRIP_COUNT_NOT_IN_TYPE,
        PROCESSES_RETURN_DIFFERENT_VALUES,
    ],
)
def count_of_local_condition(env, dynamic):
    """The number of iterations of a loop whose condition differs between shards is not replicated.

    Counting starts at a constant and adds a constant, so the counter is typed as replicated. Yet
    each shard stops when its cells require it. The count should not pass as `P()`, but it passes:
    the result is the count of one shard. jax#40823 reports the same for a `cond` with a condition
    that varies. Until this is refused, reduce everything that the condition of a loop depends on,
    or mark the counter as varying.
    """

    def run(u):
        limit = (10 * u[0]).astype(jnp.int32)
        if dynamic:
            return lax.fori_loop(0, limit, lambda _, count: count + 1, 0)
        return lax.while_loop(lambda count: count < limit, lambda count: count + 1, 0)

    mapped_fn = env.compat.shard_map(
        run, mesh=env.mesh(SHARDS, "x"), in_specs=P("x"), out_specs=P()
    )
    return Program(
        mapped_fn,
        args=(wave(env),),
        reference=raises("ValueError|TypeError", match="out_specs|var"),
    )
