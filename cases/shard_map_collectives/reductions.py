"""Values of psum, pmean, pmax and pmin, the dtypes they accept, and their number of messages.

Most sharded programs communicate by reductions. Their values hardly ever changed; the verdicts of
the check, the refusals, and the number of messages did.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, defaults, deviation, probe, program
from conformance.kit.endings import ending

from ._helpers import SHARDS, map_shards, numbers, shards_of, square_mesh

defaults(devices=4)


PARTS_SENT_SEPARATELY = deviation(
    "jax<0.7.2",
    platform="cpu",
    outcome="ok",
    match="collectives",
    reason="XLA for CPUs sent the parts of a pytree one by one",
)


@program(
    source="jax-ml/jax#2337",
    facts={"collectives": {"all-reduce": 1}},
    deviations=[PARTS_SENT_SEPARATELY],
)
def two_sums_in_one(env):
    """`psum` of a pair is one all-reduce of both, not two; on CPU since 0.7.2."""

    def body(x):
        return lax.psum((x, 2 * x[:1]), "x")

    fn = map_shards(env, body, P("x"), P())
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: _sum_pair(shards_of(x)))


def _sum_pair(parts):
    return parts.sum(0), 2 * parts[:, :1].sum(0)


@probe(source="jax-ml/jax#2337")
def dtypes_of_sums(env):
    """Sums keep their dtype, even 8 bits that overflow; booleans are counted in int32."""

    def body(x):
        tree = {"bool": x > 4, "int8": 10 * x.astype(jnp.int8), "half": x.astype(jnp.float16)}
        return lax.psum(tree, "x")

    def both(x):
        return [map_shards(env, body, P("x"), P(), check=check)(x) for check in (True, False)]

    x = numbers(env, 8)
    parts = shards_of(x)
    reference = {
        "bool": (parts > 4).sum(0).astype(np.int32),
        "int8": (10 * parts.sum(0)).astype(np.int64).astype(np.int8),
        "half": parts.sum(0).astype(np.float16),
    }
    return Observed(jax.jit(both)(x), reference=[reference, reference])


@probe(source="jax-ml/jax#2382")
def mean_of_integers(env):
    """`pmean` of integers is a float, and divides by the size of the group."""
    x = np.arange(1, 9, dtype=np.int32)

    def body(x):
        pairs = lax.pmean(x, "x", axis_index_groups=[[0, 3], [1, 2]])
        return {"all": lax.pmean(x, "x"), "pairs": pairs}

    parts = shards_of(x)
    means = {"all": np.stack([parts.mean(0)] * SHARDS), "pairs": (parts + parts[::-1]) / 2}
    fn = map_shards(env, body, P("x"), P("x"), check=False)
    reference = {key: mean.astype(np.float32).ravel() for key, mean in means.items()}
    return Observed(jax.jit(fn)(x), reference=reference)


NO_RULE_FOR_PMAX = deviation(
    "jax<0.4.34",
    error="NotImplementedError",
    match="No replication rule for pmax",
    reason="the replication check had no rule for pmax; switch it off in these releases",
    issue="jax-ml/jax#20335",
)


@program(
    source="jax-ml/jax#20335",
    facts={"collectives": {"all-reduce": 2}},
    deviations=[NO_RULE_FOR_PMAX],
)
def extremes(env):
    """`pmax` and `pmin` give the largest and smallest over all shards, the same on each shard."""
    fn = map_shards(env, lambda x: (lax.pmax(x, "x"), lax.pmin(x, "x")), P("x"), P())
    return Program(
        fn,
        args=(numbers(env, 8),),
        reference=lambda x: (shards_of(x).max(0), shards_of(x).min(0)),
    )


NO_DERIVATIVE_OF_PMAX = deviation(
    params=["stopped_after"],
    error="NotImplementedError",
    match="Differentiation rule for 'pmax' not implemented",
    reason="pmax has no derivative, and JAX requests it before the gradient is stopped",
    issue="jax-ml/jax#7167",
)


@program(
    source="jax-ml/jax#7167",
    platforms=("cpu",),
    params={"stopped_before": {"after": False}, "stopped_after": {"after": True}},
    deviations=[NO_DERIVATIVE_OF_PMAX],
)
def softmax_over_shards(env, after):
    """Gradient of a logsumexp over shards, shifted by `pmax` so that nothing overflows.

    The shift needs no derivative: stop the gradient of its argument, not of its result.
    """

    def logsumexp(x):
        stop = lax.stop_gradient
        top = stop(lax.pmax(x.max(), "x")) if after else lax.pmax(stop(x.max()), "x")
        return top + jnp.log(lax.psum(jnp.exp(x - top).sum(), "x"))

    def exact(x):
        weights = np.exp(x.astype(np.float64) - x.max())
        return weights / weights.sum()

    fn = jax.grad(map_shards(env, logsumexp, P("x"), P(), check=False))
    return Program(fn, args=(100 * numbers(env, 8),), reference=exact)


REPLICATED_SUM_REFUSED = deviation(
    "jax<0.4.31",
    error="Exception",
    match="must be applied to a device-varying replication type",
    reason="the replication check refused the sum of a value that is equal on all shards",
    issue="jax-ml/jax#19175",
)


@program(
    source="jax-ml/jax#19175",
    facts={"collectives": {"all-reduce": 2}},
    deviations=[REPLICATED_SUM_REFUSED],
)
def sum_of_a_sum(env):
    """`psum` twice, as when a library sums a sum of its caller, is 4 times the sum.

    The second sum gains nothing and both are communicated; it must be neither refused nor omitted.
    """
    fn = map_shards(env, lambda x: lax.psum(lax.psum(x, "x"), "x"), P("x"), P())
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: SHARDS * shards_of(x).sum(0))


REPLICATED_ARGUMENT_REFUSED = deviation(
    "jax<0.4.31",
    params=["check_on"],
    error="Exception",
    match="must be applied to a device-varying replication type",
    reason="the replication check refused the sum of a value that is equal on all shards",
    issue="jax-ml/jax#19175",
)


@program(
    source="jax-ml/jax#19175",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1}},
    deviations=[REPLICATED_ARGUMENT_REFUSED],
)
def sum_of_what_all_have(env, check):
    """`psum` of a replicated argument multiplies by the number of shards.

    The check makes no difference.
    """
    fn = map_shards(env, lambda x: lax.psum(x, "x"), P(), P(), check=check)
    return Program(fn, args=(numbers(env, 8),), reference=lambda x: SHARDS * x.astype(np.float64))


@program(source="jax-ml/jax@c576d328bd1e", facts={"collectives": {}})
def number_of_shards(env):
    """`psum(1)` is the size of the axis, known while tracing: nothing is communicated."""

    def body(x):
        size = lax.psum(1, "x")
        return x.reshape(int(size), -1) + lax.psum(0.5, "x")

    fn = map_shards(env, body, P("x"), P("x"))
    return Program(
        fn, args=(numbers(env, 16),), reference=lambda x: x.reshape(16, 1).astype(np.float64) + 2
    )


@program(source="jax-ml/jax#19601", facts={"collectives": {"all-reduce": 3}})
def along_each_axis(env):
    """Sums over rows of a mesh, over its columns, and over both use three sets of devices."""

    def body(x):
        return lax.psum(x, "a"), lax.psum(x**2, "b"), lax.psum(x**3, ("a", "b"))

    def exact(x):
        blocks = x.astype(np.float64).reshape(2, 2, 2, 2)
        rows, columns = blocks.sum(0), (blocks**2).sum(2)
        return rows.reshape(2, 4), columns.reshape(4, 2), (blocks**3).sum((0, 2))

    out = (P(None, "b"), P("a"), P())
    fn = map_shards(env, body, P("a", "b"), out, mesh=square_mesh(env))
    return Program(fn, args=(numbers(env, 4, 4),), reference=exact)


GROUPS = [[0, 2], [3, 1]]


@probe(source="jax-ml/jax#19709")
def in_groups(env):
    """Collectives within two groups of shards follow the order of members in each group."""
    x = numbers(env, 16)

    def body(x):
        groups = {"axis_index_groups": GROUPS}
        return {
            "psum": lax.psum(x, "x", **groups),
            "pmax": lax.pmax(x, "x", **groups),
            "all_gather": lax.all_gather(x, "x", tiled=True, **groups),
            "psum_scatter": lax.psum_scatter(x, "x", tiled=True, **groups),
            "all_to_all": lax.all_to_all(x, "x", 0, 0, tiled=True, **groups),
        }

    by_shard = {}
    for group in GROUPS:
        parts = shards_of(x)[group]
        halves = parts.reshape(2, 2, 2)
        by_shard |= {
            shard: {
                "psum": parts.sum(0),
                "pmax": parts.max(0),
                "all_gather": parts.ravel(),
                "psum_scatter": halves.sum(0)[place],
                "all_to_all": halves[:, place].ravel(),
            }
            for place, shard in enumerate(group)
        }
    observed = jax.jit(map_shards(env, body, P("x"), P("x"), check=False))(x)
    exact = {
        op: np.concatenate([by_shard[shard][op] for shard in range(SHARDS)]) for op in by_shard[0]
    }
    return Observed(observed, reference=exact)


GROUP_SUMS_NOT_TYPED = deviation(
    error="NotImplementedError",
    reason="a sum over some of the shards differs between shards, which the types cannot express",
    issue="jax-ml/jax#19709",
)


@probe(source="jax-ml/jax#19709", deviations=[GROUP_SUMS_NOT_TYPED])
def checked_in_groups(env):
    """A sum within groups of shards with the check on is never accepted: switch the check off."""
    x = numbers(env, 8)
    fn = map_shards(env, lambda x: lax.psum(x, "x", axis_index_groups=GROUPS), P("x"), P("x"))
    parts = shards_of(x)
    return Observed(jax.jit(fn)(x), reference=(parts + parts[[2, 3, 0, 1]]).ravel())


@probe(
    source="jax-ml/jax@2d409b856854",
    params={"psum": {"scatter": False}, "psum_scatter": {"scatter": True}},
)
def groups_of_two_sizes(env, scatter):
    """A group of one shard and a group of three are summed correctly, but not scattered.

    If results would have different shapes, the groups are refused.
    """
    x, groups = numbers(env, 24), [[0], [1, 2, 3]]

    def body(x):
        if scatter:
            return lax.psum_scatter(x, "x", axis_index_groups=groups, tiled=True)
        return lax.psum(x, "x", axis_index_groups=groups)

    fn = jax.jit(map_shards(env, body, P("x"), P("x"), check=False))
    if scatter:
        outcome = ending(fn, x, words=("same size", "verifier errors"))
        return Observed(outcome, reference="ValueError: verifier errors")
    parts = shards_of(x)
    return Observed(fn(x), reference=np.concatenate([parts[0], *([parts[1:].sum(0)] * 3)]))


NO_RULE_FOR_PMAX_OVER_NO_AXIS = deviation(
    "jax<0.4.34",
    params=["pmax"],
    error="NotImplementedError",
    match="No replication rule for pmax",
    reason="the replication check had no rule for pmax; switch it off in these releases",
    issue="jax-ml/jax#20335",
)
NO_VARYING_AXIS_REFUSED = deviation(
    "jax>=0.6,<0.11.1",
    params=["pmax"],
    error="ValueError",
    reason="a value that varies over no axis was refused",
    issue="jax-ml/jax@c54aa850874e",
)


@probe(
    source="jax-ml/jax#19720",
    params={
        "pmax": {"ops": ["pmax"]},
        "others": {
            "ops": ["psum", "pmean", "all_gather", "psum_scatter", "all_to_all", "axis_index"]
        },
    },
    deviations=[NO_RULE_FOR_PMAX_OVER_NO_AXIS, NO_VARYING_AXIS_REFUSED],
)
def over_no_axis(env, ops):
    """A collective over no axis leaves its argument unchanged, as a library may expect."""
    x = numbers(env, 16)
    extra_arguments = {"all_gather": {"tiled": True}, "psum_scatter": {"tiled": True}}
    calls = {
        "all_to_all": lambda x: lax.all_to_all(x, (), 0, 0, tiled=True),
        "axis_index": lambda x: x + lax.axis_index(()),
    }

    def body(x):
        default_calls = {
            op: lambda x, op=op: getattr(lax, op)(x, (), **extra_arguments.get(op, {}))
            for op in ops
        }
        return {op: (default_calls | calls)[op](x) for op in ops}

    fn = map_shards(env, body, P("x"), P("x"))
    return Observed(jax.jit(fn)(x), reference=dict.fromkeys(ops, x.astype(np.float64)))


EMPTY_ARRAY_CRASHED = deviation(
    "jax==0.11.2",
    outcome="crashed",
    reason="a segmentation fault for an empty argument among others",
)


@probe(source="jax-ml/jax#35013", platforms=("cpu",), deviations=[EMPTY_ARRAY_CRASHED])
def an_empty_array_among_others(env):
    """A jitted shard_map takes an empty sharded array and another array.

    On 0.11.2 alone it ends the process.
    """
    fn = env.compat.shard_map(
        lambda x, y: (2 * x, 2 * y), mesh=env.mesh(4, "x"), in_specs=P("x"), out_specs=P("x")
    )
    x, y = np.ones(8, np.float32), np.ones(0, np.float32)
    return Observed(jax.jit(fn)(x, y), (2 * x, y))


NO_REDUCTION_OF_COMPLEX_NUMBERS = deviation(
    "jax>=0.4.30",
    params=["max", "min"],
    error="XlaRuntimeError|JaxRuntimeError",
    match="Unsupported reduction computation|AllReduce for computation",
    reason="an all-reduce knows no maximum of complex numbers, which XLA computes part by part",
    issue="jax-ml/jax#16551",
)


@probe(
    source="jax-ml/jax#16551",
    platforms=("cpu",),
    params={"max": {"name": "max"}, "min": {"name": "min"}, "sum": {"name": "sum"}},
    deviations=[NO_REDUCTION_OF_COMPLEX_NUMBERS],
)
def sharded_extreme_of_complex_numbers(env, name):
    """`jnp.max` of a sharded complex array is an error of the compiler; unsharded, it works."""
    z = np.array([1 + 2j, 3, 0, 1j], np.complex64)
    sharded = jax.device_put(z, NamedSharding(env.mesh(4, "x"), P("x")))
    return Observed(jax.jit(getattr(jnp, name))(sharded), getattr(np, name)(z))


FLOATS_OF_8_BITS_REFUSED = deviation(
    "jax<0.4.33",
    params=["float8_e4m3fn", "float8_e5m2"],
    error="XlaRuntimeError",
    match="Invalid LLVM IR",
    reason="XLA for CPUs could not compile the all-reduce",
)
INTEGERS_OF_4_BITS_REFUSED = deviation(
    "jax<0.5",
    params=["int4"],
    error="XlaRuntimeError",
    match="s4 is currently only supported|Int4 is not supported in collective",
    reason="XLA for CPUs refused 4 bits in a collective",
)


@probe(
    source="jax-ml/jax#2337",
    platforms=("cpu",),
    params={
        "float8_e4m3fn": {"dtype": "float8_e4m3fn"},
        "float8_e5m2": {"dtype": "float8_e5m2"},
        "int4": {"dtype": "int4"},
    },
    deviations=[FLOATS_OF_8_BITS_REFUSED, INTEGERS_OF_4_BITS_REFUSED],
)
def reductions_of_few_bits(env, dtype):
    """On a CPU, `psum`, `pmax` and `psum_scatter` of numbers of 8 and of 4 bits keep the dtype."""
    x = np.array([0, 1, 2, 1] * 4).astype(jnp.dtype(dtype))

    def body(x):
        return lax.psum(x, "x"), lax.pmax(x, "x"), lax.psum_scatter(x, "x", tiled=True)

    fn = map_shards(env, body, P("x"), (P(), P(), P("x")), check=False)
    results = [np.asarray(y) for y in jax.jit(fn)(x)]
    exact = np.array([0, 4, 8, 4]), np.array([0, 1, 2, 1]), np.array([0, 4, 8, 4])
    if dtype == "int4":
        exact = np.array([0, 4, -8, 4]), exact[1], np.array([0, 4, -8, 4])
    return Observed(
        {"dtypes": [y.dtype.name for y in results], "values": [y.astype(int) for y in results]},
        {"dtypes": [dtype] * 3, "values": [*exact]},
    )


NAN_LOST_BETWEEN_SHARDS = deviation(
    "jax>=0.4.30",
    platform="cpu",
    outcome="ok",
    reason="the all-reduce of a CPU returns the other number for a NaN",
)


@probe(
    source="jax-ml/jax#2337",
    platforms=("cpu",),
    params={"max": {"name": "max"}, "min": {"name": "min"}},
    deviations=[NAN_LOST_BETWEEN_SHARDS],
)
def extreme_of_a_nan_on_a_shard(env, name):
    """On a CPU, a NaN on a shard is silently lost by `pmax` and by `jnp.max` of a sharded array.

    On one device, and under `vmap`, the result is NaN, as NumPy has it.
    """
    x = np.array([1, np.nan, 2, 3], np.float32)
    collective = {"max": lax.pmax, "min": lax.pmin}[name]
    mapped = map_shards(env, lambda x: collective(x, "x"), P("x"), P(), check=False)
    sharded = jax.device_put(x, NamedSharding(env.mesh(4, "x"), P("x")))
    observed = {
        "collective": jax.jit(mapped)(x)[0],
        "sharded array": jax.jit(getattr(jnp, name))(sharded),
        "one device": jax.jit(getattr(jnp, name))(x),
    }
    return Observed(
        {key: bool(np.isnan(value)) for key, value in observed.items()},
        dict.fromkeys(observed, True),
    )
