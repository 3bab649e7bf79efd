"""Meshes with some manual axes, and maps within maps.

Axes that a map leaves to the compiler (`auto=`, later all except `axis_names=`) were long
experimental: programs that ran did so under jit only, and often without the check. From 0.6.1 a
map within a map makes further axes manual; its mesh is the mesh of the outer map.
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

from ._helpers import map_shards, numbers

defaults(devices=8)


def wide_mesh(env):
    """Return a mesh of two by four devices, axes `a` and `b`."""
    return env.mesh((2, 4), ("a", "b"))


def map_partly(env, f, in_specs, out_specs, *, check=True):
    """Return `f` mapped over axis `a`, while `b` is left to the compiler."""
    return map_shards(env, f, in_specs, out_specs, check=check, mesh=wide_mesh(env), manual=("a",))


def map_inner(env, f, in_specs, out_specs, *, check=True):
    """Return `f` mapped over axis `b`, to be called within a map over `a`."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(
            f, in_specs=in_specs, out_specs=out_specs, axis_names={"b"}, check_vma=check
        )
    return map_shards(env, f, in_specs, out_specs, check=check, mesh=wide_mesh(env), manual=("b",))


GATHERED_BEFORE_SHARDY = deviation(
    "jax<0.7",
    platform="cpu",
    outcome="ok",
    match="collectives",
    reason="the partitioner before Shardy gathered the result along the automatic axis",
)


@program(
    source="jax-ml/jax#16843",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1}},
    deviations=[GATHERED_BEFORE_SHARDY],
)
def sum_over_the_manual_axis(env, check):
    """An explicit sum over one axis of the mesh, of columns that lie along the other axis."""
    fn = map_partly(env, lambda x: lax.psum(jnp.sin(x), "a"), P("a"), P(), check=check)
    x = numbers(env, 4, 8)
    placed = env.put(x, NamedSharding(wide_mesh(env), P("a", "b")))

    def exact(x):
        return np.sin(x.astype(np.float64)).reshape(2, 2, 8).sum(0)

    return Program(fn, args=(placed,), reference=exact)


@program(source="jax-ml/jax#16843", facts={"collectives": {"all-reduce": 2}})
def sums_by_hand_and_by_compiler(env):
    """A matrix product with an explicit sum of rows; the compiler sums the inner dimension."""

    def body(x, y):
        return lax.psum((x @ y).sum(0), "a")

    mesh = wide_mesh(env)
    x = env.put(numbers(env, 4, 8), NamedSharding(mesh, P("a", "b")))
    y = env.put(numbers(env, 8, 3, seed=1), NamedSharding(mesh, P("b")))
    fn = map_partly(env, body, (P("a"), P()), P())
    return Program(fn, args=(x, y), reference=lambda x, y: (x.astype(np.float64) @ y).sum(0))


PARTITION_ID_REFUSED = deviation(
    "jax<0.4.38",
    error="XlaRuntimeError",
    match="PartitionId instruction is not supported",
    reason="axis_index read PartitionId, which XLA refuses where it splits another axis",
    issue="jax-ml/jax@0e7f218eb0d4",
)


@probe(source="jax-ml/jax#15780", deviations=[PARTITION_ID_REFUSED])
def number_within_the_manual_axis(env):
    """`axis_index` next to an automatic axis did not compile up to 0.4.37."""
    x = numbers(env, 4, 8)

    def numbered(x, check):
        body = lambda x: 10 * x + lax.axis_index("a")  # noqa: E731 - short
        return map_partly(env, body, P("a"), P("a"), check=check)(x)

    observed = jax.jit(lambda x: [numbered(x, check=True), numbered(x, check=False)])(x)
    return Observed(observed, reference=[10 * x + np.repeat([0.0, 1.0], 2)[:, None]] * 2)


JIT_REQUIRED = deviation(
    "jax<0.7",
    error="NotImplementedError",
    reason="a partly manual map ran under jit only",
    issue="jax-ml/jax#30078",
)
SPLIT_OVER_OTHER_AXIS = deviation(
    "jax>=0.7,<0.7.2",
    params=["check_off"],
    error="AssertionError",
    reason="without the check the result was split over the other axis as well",
    issue="jax-ml/jax#30078",
)
OTHER_AXIS_REFUSED = deviation(
    "jax>=0.7.2,<0.12",
    params=["check_off"],
    error="ValueError",
    match="must refer to an axis marked as manual",
    reason="without the check the result was split over the other axis as well",
    issue="jax-ml/jax#30078",
)


@probe(
    source="jax-ml/jax#30078",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[JIT_REQUIRED, SPLIT_OVER_OTHER_AXIS, OTHER_AXIS_REFUSED],
)
def without_jit(env, check):
    """A partly manual map called directly, not under jit."""
    x = numbers(env, 4, 8)
    fn = map_partly(env, lambda x: lax.psum(x, "a"), P("a"), P(), check=check)
    reference = x.astype(np.float64).reshape(2, 2, 8).sum(0)
    return Observed(fn(x), reference=reference)


REFUSED_AFTER_TRACING = deviation(
    "jax<0.5.1", outcome="ok", reason="traced, then refused by the check or by the compiler"
)
REFUSED_BY_THE_TYPES = deviation(
    "jax>=0.6,<0.8.2",
    params=["check_on"],
    outcome="ok",
    reason="the types refused it as an axis that is not manual",
)


@probe(
    source="jax-ml/jax#16843",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[REFUSED_AFTER_TRACING, REFUSED_BY_THE_TYPES],
)
def name_of_an_automatic_axis(env, check):
    """A collective over an axis that is left to the compiler: its name is not bound."""
    fn = map_partly(env, lambda x: lax.psum(x, "b"), P("a"), P("a"), check=check)
    known = ("unbound axis name: b", "manual subgroups", "should be of type `Manual`", "varying")
    outcome = ending(jax.jit(fn), numbers(env, 4, 8), words=known)
    return Observed(outcome, reference="NameError: unbound axis name: b")


NO_NESTED_MAPS_IN_THE_CHECK = deviation(
    "jax<0.6",
    params=["check_on"],
    error="AttributeError",
    match="process_shard_map",
    reason="the replication check did not support a map within a map",
    issue="jax-ml/jax#23019",
)
OUTER_MESH_UNKNOWN = deviation(
    "jax==0.6.0",
    params=["check_on"],
    error="AssertionError",
    reason="the inner map did not know the mesh around it",
    issue="jax-ml/jax@2d8b568893cc",
)
OUTER_MESH_UNKNOWN_UNCHECKED = deviation(
    "jax>=0.5.1,<0.6.1",
    params=["check_off"],
    error="AssertionError",
    reason="the inner map did not know the mesh around it",
    issue="jax-ml/jax@2d8b568893cc",
)


@program(
    source="jax-ml/jax#23019",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 2}},
    deviations=[NO_NESTED_MAPS_IN_THE_CHECK, OUTER_MESH_UNKNOWN, OUTER_MESH_UNKNOWN_UNCHECKED],
)
def map_within_a_map(env, check):
    """Rows over one axis of the mesh, and within that columns over the other: two sums."""

    def body(x):
        columns = map_inner(env, lambda x: lax.psum(x, "b"), P(None, "b"), P(), check=check)(x)
        return lax.psum(columns**2, "a")

    def exact(x):
        blocks = x.astype(np.float64).reshape(2, 2, 4, 2)
        return (blocks.sum(2) ** 2).sum(0)

    fn = map_partly(env, body, P("a"), P(), check=check)
    return Program(fn, args=(numbers(env, 4, 8),), reference=exact)


COTANGENT_SUMMED_OVER_AUTOMATIC_AXIS = deviation(
    "jax<0.4.36",
    params=["check_off"],
    error="XlaRuntimeError",
    match="different manual subgroups",
    reason="the cotangent was also summed over the axis left to the compiler",
    issue="jax-ml/jax@2c9b917b9d01",
)


@probe(
    source="jax-ml/jax#26588",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        NO_NESTED_MAPS_IN_THE_CHECK,
        OUTER_MESH_UNKNOWN,
        OUTER_MESH_UNKNOWN_UNCHECKED,
        COTANGENT_SUMMED_OVER_AUTOMATIC_AXIS,
    ],
)
def gradient_through_both_maps(env, check):
    """Gradient, from outside, of a map within a map."""
    x = numbers(env, 4, 8)

    def body(x):
        columns = map_inner(env, lambda x: lax.psum(x, "b"), P(None, "b"), P(), check=check)(x)
        return lax.psum(columns**2, "a")

    fn = jax.jit(jax.grad(lambda x: map_partly(env, body, P("a"), P(), check=check)(x).sum()))
    sums = x.astype(np.float64).reshape(2, 2, 4, 2).sum(2, keepdims=True)
    return Observed(fn(x), reference=np.broadcast_to(2 * sums, (2, 2, 4, 2)).reshape(4, 8))


@probe(
    source="jax-ml/jax@2c9b917b9d01",
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[COTANGENT_SUMMED_OVER_AUTOMATIC_AXIS],
)
def gradient_of_a_shared_parameter(env, check):
    """Gradient of a parameter that all shards share, when one axis is automatic."""
    x = numbers(env, 4, 8)
    fn = map_partly(env, lambda w, x: w * x, (P(), P("a")), P("a"), check=check)
    gradient = jax.jit(jax.grad(lambda w: (fn(w, x) ** 2).sum()))
    return Observed(gradient(np.float32(2)), reference=4 * (x.astype(np.float64) ** 2).sum())


COMPILER_CRASHED = deviation(
    "jax<0.7",
    params=["all_gather", "all_to_all"],
    outcome="crashed",
    reason="the compiler ended the process",
)
COMPILER_CRASHED_ON_PPERMUTE = deviation(
    "jax<0.5",
    params=["ppermute"],
    outcome="crashed",
    reason="the compiler ended the process",
)


@probe(
    source="jax-ml/jax#16843",
    params={
        "pmax": {"op": "pmax"},
        "all_gather": {"op": "all_gather"},
        "psum_scatter": {"op": "psum_scatter"},
        "ppermute": {"op": "ppermute"},
        "all_to_all": {"op": "all_to_all"},
    },
    deviations=[COMPILER_CRASHED, COMPILER_CRASHED_ON_PPERMUTE],
)
def over_the_manual_axis(env, op):
    """The other collectives over the manual axis, without the check.

    Some ended the process.
    """
    x = numbers(env, 8, 8)

    def body(x):
        return {
            "pmax": lambda: lax.pmax(x, "a"),
            "all_gather": lambda: lax.all_gather(x, "a", tiled=True),
            "psum_scatter": lambda: lax.psum_scatter(x, "a", tiled=True),
            "ppermute": lambda: lax.ppermute(x, "a", [(0, 1), (1, 0)]),
            "all_to_all": lambda: lax.all_to_all(x, "a", 0, 0, tiled=True),
        }[op]()

    first, second = x.astype(np.float64).reshape(2, 4, 8)
    reference = {
        "pmax": lambda: np.tile(np.maximum(first, second), (2, 1)),
        "all_gather": lambda: np.tile(x.astype(np.float64), (2, 1)),
        "psum_scatter": lambda: first + second,
        "ppermute": lambda: np.concatenate([second, first]),
        "all_to_all": lambda: np.concatenate([first[:2], second[:2], first[2:], second[2:]]),
    }[op]()
    fn = map_partly(env, body, P("a"), P("a"), check=False)
    return Observed(jax.jit(fn)(x), reference=reference)
