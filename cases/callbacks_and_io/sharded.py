"""Callbacks in programs over several devices: what the host sees, where results are placed."""

from __future__ import annotations

import contextlib
import io
import re

import jax
import numpy as np
from jax.experimental import io_callback
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import ROW, capture_lines, refusal, struct

defaults(platforms=("cpu",))

EIGHT = np.arange(8, dtype=np.float32)


ONE_SHARDING_FOR_TWO_RESULTS = deviation(
    "jax==0.7.0",
    params=("two_results",),
    outcome="ok",
    reason="two results got one sharding, and the program was not lowered",
    issue="jax-ml/jax#30619",
)


@probe(
    source="jax-ml/jax#30619",
    devices=4,
    params={"one_result": {"results": 1}, "two_results": {"results": 2}},
    deviations=[ONE_SHARDING_FOR_TWO_RESULTS],
)
def pure_under_shard_map(env, results):
    """A `pure_callback` in shard_map: the host sees shards, and may return several arrays.

    With Shardy, a callback with two results got the sharding of one, and was not lowered.
    """
    shapes = []

    def host(x):
        shapes.append(list(np.shape(x)))
        return tuple((k + 2) * np.asarray(x) for k in range(results))

    def shard(x):
        return jax.pure_callback(host, (struct(x.shape),) * results, x)

    fn = env.compat.shard_map(
        shard, mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x"), check=False
    )
    values = []
    outcome = refusal(lambda: values.extend(jax.jit(fn)(EIGHT)), "result shardings don't match")
    exact = [(k + 2) * EIGHT for k in range(results)]
    expected = {"error": "none", "told": False, "values": exact, "seen": [[2]] * 4}
    return Observed(
        {**outcome, "values": [np.asarray(v) for v in values], "seen": shapes}, expected
    )


@probe(source="jax-ml/jax#30619", devices=4)
def io_under_shard_map(env):
    """An `io_callback` in shard_map is called for each shard: ordered, unchecked, or neither."""
    calls = {"io": [], "ordered": [], "unchecked": []}

    def map_shards(kind):
        def shard(x):
            host = lambda x: calls[kind].append(np.asarray(x).tolist())  # noqa: E731 - short
            io_callback(host, None, x, ordered=kind == "ordered")
            return x + 1

        return env.compat.shard_map(
            shard,
            mesh=env.mesh(4, "x"),
            in_specs=P("x"),
            out_specs=P("x"),
            check=kind != "unchecked",
        )

    values = jax.device_get(jax.jit(lambda x: {kind: map_shards(kind)(x) for kind in calls})(EIGHT))
    jax.effects_barrier()
    result = {"values": values, "seen": {kind: sorted(shards) for kind, shards in calls.items()}}
    shards = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    exact = {"values": dict.fromkeys(calls, EIGHT + 1), "seen": dict.fromkeys(calls, shards)}
    return Observed(result, exact)


@probe(source="jax-ml/jax#30619", devices=4)
def print_under_shard_map(env):
    """`jax.debug.print` in shard_map prints a line for each shard."""

    def shard(x):
        jax.debug.print("{}", x)
        return x

    fn = env.compat.shard_map(shard, mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x"))
    lines = capture_lines(jax.jit(fn), EIGHT)
    return Observed(lines, ["[0. 1.]", "[2. 3.]", "[4. 5.]", "[6. 7.]"])


@probe(source="jax-ml/jax#30619", devices=4)
def sharded_argument_of_jit(env):
    """A callback with an array that is sharded under jit is called once, with the whole array.

    The shards are gathered for it. Every device has the whole of its result.
    """
    array = jax.device_put(EIGHT, NamedSharding(env.mesh(4, "x"), P("x")))
    shapes, values = [], []

    def host(x):
        shapes.append(list(np.shape(x)))
        return 2 * np.asarray(x)

    def program(x):
        jax.debug.print("{}", x)
        pure = jax.pure_callback(host, struct((8,)), x)
        return pure, io_callback(host, struct((8,)), x)

    lines = capture_lines(lambda x: values.extend(jax.jit(program)(x)), array)
    placements = [[np.asarray(v), len(v.sharding.device_set)] for v in values]
    return Observed([lines, shapes, placements], [[str(EIGHT)], [[8]] * 2, [[2 * EIGHT, 4]] * 2])


@probe(source="jax-ml/jax@411450b8b896", records="the name of the target is up to XLA")
def target_of_the_call(env):
    """Compiled code calls a callback by a target: its name in StableHLO.

    From 0.6.0 it is a typed foreign function, so a search for the old name finds nothing. There is
    no right answer to compare with.
    """
    lowered = jax.jit(lambda x: jax.pure_callback(np.sin, struct((3,)), x)).lower(ROW)
    return {"targets": sorted(set(re.findall(r"@(\w*callback\w*)", lowered.as_text())))}


TOKEN_OF_FOUR_DEVICES = deviation(
    "jax<0.5",
    outcome="crashed",
    reason="the token of four devices was passed where that of one was required",
    issue="jax-ml/jax#25671",
)


@probe(source="jax-ml/jax#25671", devices=4, deviations=[TOKEN_OF_FOUR_DEVICES])
def ordered_on_four_devices_and_on_one(env):
    """An ordered callback runs on four devices, then on one; before 0.5.0 that ended the process.

    The callback has no results, and runs on four devices in shard_map.
    """
    shapes = []

    def step(x):
        io_callback(lambda x: shapes.append(x.shape), (), x, ordered=True)
        return x + 1

    fn = env.compat.shard_map(
        step, mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x"), check=False
    )
    results = [jax.jit(f)(EIGHT) for f in (fn, step)]
    jax.effects_barrier()
    return Observed((results, sorted(shapes)), ([EIGHT + 1] * 2, [(2,)] * 4 + [(8,)]))


NO_RULE_FOR_INSPECT_SHARDING = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="No replication rule for inspect_sharding",
    reason="the check had no rule for inspect_array_sharding",
    issue="jax-ml/jax#23936",
)
POSITIONAL_SHARDING = deviation(
    "jax==0.6.0",
    outcome="ok",
    reason="the callback got a PositionalSharding",
    issue="jax-ml/jax#23936",
)


@probe(
    source="jax-ml/jax#23936",
    devices=2,
    deviations=[NO_RULE_FOR_INSPECT_SHARDING, POSITIONAL_SHARDING],
)
def sharding_looked_at_within(env):
    """In shard_map with the check on, `debug.inspect_array_sharding` has a rule from 0.6.0."""
    types = []

    def shard(x):
        jax.debug.inspect_array_sharding(x, callback=lambda s: types.append(type(s).__name__))
        return x

    mesh = env.mesh(2, "x")
    f = env.compat.shard_map(shard, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check=True)
    out = jax.jit(f)(EIGHT)
    return Observed((types, out), (["NamedSharding"], EIGHT))


POSITIONAL_WITHOUT_A_CONTEXT = deviation(
    "jax<0.5",
    outcome="ok",
    reason="the callback got a PositionalSharding",
    issue="jax-ml/jax@23eaf2160a36",
)


@probe(source="jax-ml/jax@23eaf2160a36", devices=4, deviations=[POSITIONAL_WITHOUT_A_CONTEXT])
def sharding_looked_at_without_a_context(env):
    """Outside of `with mesh:`, `debug.inspect_array_sharding` under jit gives a NamedSharding."""
    types = []

    def look(x):
        jax.debug.inspect_array_sharding(x, callback=lambda s: types.append(type(s).__name__))
        return x

    x = jax.device_put(
        np.ones((4, 4), np.float32), NamedSharding(env.mesh((2, 2), ("x", "y")), P("x", "y"))
    )
    jax.block_until_ready(jax.jit(look)(x))
    return Observed(types, ["NamedSharding"])


RESULT_WITHOUT_A_SPEC = deviation(
    "jax>=0.6,!=0.11.2",
    outcome="ok",
    reason="the sharding of the result has no mesh and no spec",
)


@probe(source="jax-ml/jax#17003", devices=4, deviations=[RESULT_WITHOUT_A_SPEC])
def sharding_of_a_result(env):
    """The result of a `pure_callback` of a sharded array under jit is replicated on the mesh.

    From 0.6.0, except in 0.11.2, its sharding is a GSPMDSharding, so that `x.sharding.spec` is an
    AttributeError.
    """
    x = jax.device_put(EIGHT, NamedSharding(env.mesh(4, "x"), P("x")))
    double = jax.jit(lambda x: jax.pure_callback(lambda x: 2 * np.asarray(x), struct(x.shape), x))
    out = double(x)
    observed = {
        "class": type(out.sharding).__name__,
        "spec": str([*getattr(out.sharding, "spec", ["none"])]),
        "replicated": out.sharding.is_fully_replicated,
        "value": np.asarray(out),
    }
    return Observed(
        observed, {"class": "NamedSharding", "spec": "[]", "replicated": True, "value": 2 * EIGHT}
    )


NO_VALUES_TO_COUNT = deviation(
    "jax<0.7",
    error="TypeError",
    match="safe_zip requires at least 1 argument",
    reason="the number of calls was that of the shards of the values",
    issue="jax-ml/jax@07193467a0f0",
)
NO_CALL = deviation(
    "jax>=0.7",
    outcome="ok",
    reason="the callback is called for each shard of its values, so without values not at all",
    issue="jax-ml/jax@07193467a0f0",
)


@probe(source="jax-ml/jax@07193467a0f0", devices=4, deviations=[NO_VALUES_TO_COUNT, NO_CALL])
def message_without_values(env):
    """`jax.debug.callback` without values, in shard_map without jit, is silently not called.

    `jax.debug.print` of a plain text prints nothing there. Under jit, both run for each shard.
    """
    calls = []

    def shard(x):
        jax.debug.callback(lambda: calls.append("called"))
        return x

    fn = env.compat.shard_map(
        shard, mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x"), check=False
    )
    jax.block_until_ready(fn(EIGHT))
    jax.effects_barrier()
    return Observed(len(calls), reference=4)


NO_RULE_FOR_A_DRAWING = deviation(
    "jax<0.6",
    error="NotImplementedError",
    match="replication rule",
    reason="the check had no rule for inspect_array_sharding",
    issue="jax-ml/jax#23936",
)
NO_SHARDING_TO_DRAW = deviation(
    "jax==0.6.0",
    error="XlaRuntimeError",
    match="inspect_sharding",
    reason="the sharding of an array within shard_map could not be converted to one of JAX",
    issue="jax-ml/jax@18fcf917cbc5",
)


@probe(
    source="jax-ml/jax@18fcf917cbc5",
    devices=2,
    deviations=[NO_RULE_FOR_A_DRAWING, NO_SHARDING_TO_DRAW],
)
def sharding_drawn_within(env):
    """In shard_map with the check on, `debug.visualize_array_sharding` draws an array."""

    def shard():
        x = jax.numpy.zeros(4)
        jax.debug.visualize_array_sharding(x)
        return x

    f = env.compat.shard_map(
        shard, mesh=env.mesh(2, "x"), in_specs=(), out_specs=P("x"), check=True
    )
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        out = jax.block_until_ready(jax.jit(f)())
    return Observed((bool(text.getvalue()), out), (True, np.zeros(8, np.float32)))
