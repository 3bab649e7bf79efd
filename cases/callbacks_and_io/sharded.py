"""Callbacks of programs over several devices: which part the host sees, and where results lie."""

from __future__ import annotations

import re

import jax
import numpy as np
from jax.experimental import io_callback
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, deviation, probe

from ._helpers import ROW, printed, refusal, struct

EIGHT = np.arange(8, dtype=np.float32)


@probe(
    source="jax-ml/jax#30619",
    devices=4,
    platforms=("cpu",),
    params={"one_result": {"results": 1}, "two_results": {"results": 2}},
    deviations=[
        deviation(
            "jax==0.7.0",
            params=("two_results",),
            outcome="ok",
            reason="not lowered: one sharding for two results",
            issue="jax-ml/jax#30619",
        ),
    ],
)
def pure_under_shard_map(env, results):
    """A `pure_callback` within shard_map: the host sees shards, and may return several arrays.

    With Shardy a callback of two results was given the sharding of one, and was not lowered.
    """
    shapes = []

    def host(x):
        shapes.append(list(np.shape(x)))
        return tuple((k + 2) * np.asarray(x) for k in range(results))

    def shard(x):
        return jax.pure_callback(host, (struct(x.shape),) * results, x)

    mapped = env.compat.shard_map(
        shard, mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x"), check=False
    )
    values = []
    ended = refusal(lambda: values.extend(jax.jit(mapped)(EIGHT)), "result shardings don't match")
    exact = [(k + 2) * EIGHT for k in range(results)]
    expected = {"error": "none", "told": False, "values": exact, "seen": [[2]] * 4}
    return Observed({**ended, "values": [np.asarray(v) for v in values], "seen": shapes}, expected)


@probe(source="jax-ml/jax#30619", devices=4, platforms=("cpu",))
def io_under_shard_map(env):
    """An `io_callback` within shard_map is called for each shard, ordered, unchecked or neither."""
    seen = {"io": [], "ordered": [], "unchecked": []}

    def mapped(kind):
        def shard(x):
            host = lambda x: seen[kind].append(np.asarray(x).tolist())  # noqa: E731 - short
            io_callback(host, None, x, ordered=kind == "ordered")
            return x + 1

        return env.compat.shard_map(
            shard,
            mesh=env.mesh(4, "x"),
            in_specs=P("x"),
            out_specs=P("x"),
            check=kind != "unchecked",
        )

    values = jax.device_get(jax.jit(lambda x: {kind: mapped(kind)(x) for kind in seen})(EIGHT))
    jax.effects_barrier()
    found = {"values": values, "seen": {kind: sorted(shards) for kind, shards in seen.items()}}
    shards = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    exact = {"values": dict.fromkeys(seen, EIGHT + 1), "seen": dict.fromkeys(seen, shards)}
    return Observed(found, exact)


@probe(source="jax-ml/jax#30619", devices=4, platforms=("cpu",))
def print_under_shard_map(env):
    """`jax.debug.print` within shard_map: a line for each shard."""

    def shard(x):
        jax.debug.print("{}", x)
        return x

    mapped = env.compat.shard_map(shard, mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x"))
    lines = printed(jax.jit(mapped), EIGHT)
    return Observed(lines, ["[0. 1.]", "[2. 3.]", "[4. 5.]", "[6. 7.]"])


@probe(source="jax-ml/jax#30619", devices=4, platforms=("cpu",))
def sharded_argument_of_jit(env):
    """A callback of an array that is sharded under jit: called once, with the whole of it.

    The shards are gathered for it. What it returns lies whole on every device.
    """
    placed = jax.device_put(EIGHT, NamedSharding(env.mesh(4, "x"), P("x")))
    seen, values = [], []

    def host(x):
        seen.append(list(np.shape(x)))
        return 2 * np.asarray(x)

    def program(x):
        jax.debug.print("{}", x)
        pure = jax.pure_callback(host, struct((8,)), x)
        return pure, io_callback(host, struct((8,)), x)

    lines = printed(lambda x: values.extend(jax.jit(program)(x)), placed)
    found = [[np.asarray(v), len(v.sharding.device_set)] for v in values]
    return Observed([lines, seen, found], [[str(EIGHT)], [[8]] * 2, [[2 * EIGHT, 4]] * 2])


@probe(
    source="jax-ml/jax@411450b8b896",
    records="the name of the target is up to XLA",
    platforms=("cpu",),
)
def target_of_the_call(env):
    """How a callback is called by compiled code: the target's name in StableHLO.

    From 0.6.0 it is a typed foreign function, so text that is searched for the old name finds
    nothing. There is no right answer to compare with.
    """
    lowered = jax.jit(lambda x: jax.pure_callback(np.sin, struct((3,)), x)).lower(ROW)
    return {"targets": sorted(set(re.findall(r"@(\w*callback\w*)", lowered.as_text())))}


@probe(
    source="jax-ml/jax#25671",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.5",
            outcome="crashed",
            reason="the token of four devices, where one was asked for",
            issue="jax-ml/jax#25671",
        )
    ],
)
def ordered_on_four_devices_and_on_one(env):
    """An ordered callback without results in shard_map, then without: it ended the process."""
    seen = []

    def step(x):
        io_callback(lambda x: seen.append(x.shape), (), x, ordered=True)
        return x + 1

    mapped = env.compat.shard_map(
        step, mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x"), check=False
    )
    made = [jax.jit(f)(EIGHT) for f in (mapped, step)]
    jax.effects_barrier()
    return Observed((made, sorted(seen)), ([EIGHT + 1] * 2, [(2,)] * 4 + [(8,)]))


@probe(
    source="jax-ml/jax#23936",
    devices=2,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.6",
            error="NotImplementedError",
            match="No replication rule for inspect_sharding",
            reason="the check had no rule for it",
            issue="jax-ml/jax#23936",
        ),
        deviation(
            "jax==0.6.0",
            outcome="ok",
            reason="a sharding by positions",
            issue="jax-ml/jax#23936",
        ),
    ],
)
def sharding_looked_at_within(env):
    """`debug.inspect_array_sharding` in shard_map with the check on: a rule since 0.6.0."""
    seen = []

    def shard(x):
        jax.debug.inspect_array_sharding(x, callback=lambda s: seen.append(type(s).__name__))
        return x

    mesh = env.mesh(2, "x")
    f = env.compat.shard_map(shard, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check=True)
    out = jax.jit(f)(EIGHT)
    return Observed((seen, out), (["NamedSharding"], EIGHT))
