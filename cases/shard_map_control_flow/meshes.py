"""Loops where only some axes are manual, loops in nested maps, and loops without jit.

The axes that shard_map leaves to the compiler also pass through the body of a loop. Without `jit`
a loop inside shard_map is compiled separately, and what varies in it is determined separately.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding

from conformance.kit import Observed, Program, defaults, deviation, probe, program
from conformance.kit.endings import refusal

from ._helpers import P, map_shards, numbers

defaults(devices=4)


@program(source="jax-ml/jax#23019", params={"check_off": {"check": False}})
def scan_with_one_manual_axis(env, check):
    """In a scan of shards along x, the compiler keeps rows spread over y."""
    mesh = env.mesh((2, 2), ("x", "y"))

    def shard(u):
        return lax.scan(lambda c, _: (c - lax.pmean(c, "x") / 2, None), u, None, length=3)[0]

    fn = env.compat.shard_map(
        shard, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check=check, axis_names=["x"]
    )
    u = env.put(numbers(env).reshape(4, 4), NamedSharding(mesh, P("x", "y")))

    def exact(u):
        u = np.float64(u).reshape(2, 2, 4)
        for _ in range(3):
            u = u - u.mean(0) / 2
        return u.reshape(4, 4)

    return Program(fn, args=(u,), reference=exact)


LOOP_INDEX_ABORTS = deviation(
    "jax<0.5.1",
    outcome="crashed",
    params=("map",),
    reason="the partitioner of XLA aborted on the index of a loop",
    issue="jax-ml/jax#23019",
)
PARTLY_MANUAL_LOOP_ABORTS = deviation(
    "jax<0.4.33",
    outcome="crashed",
    params=("while",),
    reason="the partitioner of XLA aborted on a partly manual loop",
    issue="jax-ml/jax#23019",
)


@probe(
    source="jax-ml/jax#23019",
    params={"map": {"loop": "map"}, "while": {"loop": "while"}},
    deviations=[LOOP_INDEX_ABORTS, PARTLY_MANUAL_LOOP_ABORTS],
)
def loop_with_one_manual_axis(env, loop):
    """`map` and `while` run with x manual, y left to the compiler, and the check off."""
    mesh = env.mesh((2, 2), ("x", "y"))
    run = {
        "map": lambda u: lax.map(lambda row: 2 * row, u),
        "while": lambda u: lax.while_loop(lambda c: lax.pmax(c.max(), "x") < 2, lambda c: 2 * c, u),
    }[loop]
    fn = env.compat.shard_map(
        run, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check=False, axis_names=["x"]
    )
    u = jax.device_put(numbers(env).reshape(4, 4), NamedSharding(mesh, P("x", "y")))
    return Observed(jax.jit(fn)(u), 2 * np.float64(u))


PARTITION_ID_NOT_SUPPORTED = deviation(
    "jax<0.4.38",
    error="XlaRuntimeError",
    match="PartitionId instruction is not supported",
    reason="the index was lowered to an instruction that requires all axes to be manual",
    issue="jax-ml/jax#15780",
)
COMPILER_CRASHED = deviation(
    "jax>=0.5.3,<0.8.1",
    outcome="crashed",
    reason="the compiler ended the process",
    issue="jax-ml/jax#23019",
)


@probe(
    source="jax-ml/jax#15780",
    params={"check_off": {"check": False}},
    deviations=[PARTITION_ID_NOT_SUPPORTED, COMPILER_CRASHED],
)
def index_with_one_manual_axis(env, check):
    """`axis_index` runs in the body of a scan with x manual and y left to the compiler."""
    mesh = env.mesh((2, 2), ("x", "y"))

    def shard(u):
        return lax.scan(lambda c, _: (c + lax.axis_index("x"), None), u, None, length=3)[0]

    fn = env.compat.shard_map(
        shard, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check=check, axis_names=["x"]
    )
    u = numbers(env)
    return Observed(jax.jit(fn)(u), u + np.float64(np.repeat([0, 3], 8)))


NESTED_LOOP_INDEX_ABORTS = deviation(
    "jax<0.5.1",
    outcome="crashed",
    reason="the partitioner of XLA aborted on the index of a loop",
    issue="jax-ml/jax#23019",
)
NESTED_MAP_ASSERTION = deviation(
    "jax>=0.5.1,<0.6.1",
    error="AssertionError",
    reason="an assertion refused a map in a map over a mesh of devices",
    issue="jax-ml/jax#23019",
)


@probe(source="jax-ml/jax#23019", deviations=[NESTED_LOOP_INDEX_ABORTS, NESTED_MAP_ASSERTION])
def map_in_a_map(env):
    """As in the report, a scan in a map over x calls a function mapped over y, which sums there."""
    mesh = env.mesh((2, 2), ("x", "y"))

    def inner(row):
        # from 0.6.1 on the inner map takes the abstract mesh of its context, where x is manual
        nested = jax.sharding.get_abstract_mesh() if hasattr(jax, "shard_map") else mesh
        rows = env.compat.shard_map(
            lambda r: r / lax.psum(r.sum(), "y"),
            mesh=nested,
            in_specs=P("y"),
            out_specs=P("y"),
            check=False,
            axis_names=["y"],
        )
        return rows(row)

    fn = env.compat.shard_map(
        lambda u: lax.map(inner, u),
        mesh=mesh,
        in_specs=P("x"),
        out_specs=P("x"),
        check=False,
        axis_names=["x"],
    )
    u = numbers(env).reshape(4, 4)
    return Observed(jax.jit(fn)(u), u / np.float64(u).sum(1, keepdims=True))


NO_RULE_FOR_WHILE = deviation(
    "jax<0.6",
    params=("while",),
    error="NotImplementedError",
    match="No replication rule for while",
    reason="the replication check had no rule for while; switch it off in these releases",
    issue="jax-ml/jax#27664",
)


@probe(
    source="jax-ml/jax#18632",
    params={"scan": {"which": "scan"}, "while": {"which": "while"}},
    deviations=[NO_RULE_FOR_WHILE],
)
def without_jit(env, which):
    """A loop in shard_map without jit, with a mean over shards inside."""

    def shard(u):
        if which == "scan":
            return lax.scan(lambda c, _: (c + lax.pmean(c, "x"), None), u, None, length=2)[0]
        body = lambda c: (c[0] + lax.pmean(c[0], "x"), c[1] + 1)  # noqa: E731
        return lax.while_loop(lambda c: c[1] < 2, body, (u, jnp.int32(0)))[0]

    u = numbers(env)
    mean = np.tile(np.float64(u).reshape(4, 4).mean(0), 4)
    return Observed(map_shards(env, shard)(u), u + 3 * mean)


NONE_NOT_FOR_ARRAYS = deviation(
    "jax<0.4.34",
    error="ValueError",
    reason="None was allowed, if at all, only for arguments that are not arrays",
    issue="jax-ml/jax#22043",
)
NAMES_OF_NONE = deviation(
    "jax>=0.4.38,<0.6",
    error="TypeError",
    match="'NoneType' object is not iterable",
    reason="without jit, the check of several results read the axis names of a None",
    issue="jax-ml/jax#27673",
)


@probe(
    source="jax-ml/jax#27673", platforms=("cpu",), deviations=[NONE_NOT_FOR_ARRAYS, NAMES_OF_NONE]
)
def spec_of_none(env):
    """`in_specs=(None,)` passes an array whole and unchecked.

    Without jit, a primitive with two results in the map failed from 0.4.38 to 0.5.3.
    """
    x = numbers(env)
    f = map_shards(env, lambda u: jnp.split(u, 2), (None,))
    return Observed(f(x), [np.tile(half, 4) for half in np.split(x, 2)])


MESH_NOT_CHECKED = deviation(
    "jax<0.9.1",
    outcome="ok",
    reason="the mesh was not checked",
    issue="jax-ml/jax@d927d96b6076",
)


@probe(source="jax-ml/jax@d927d96b6076", devices=2, deviations=[MESH_NOT_CHECKED])
def mesh_without_axes(env):
    """A mesh without devices and axes is refused with a ValueError that explains it."""
    mesh = jax.sharding.Mesh(np.empty((), object), ())
    f = env.compat.shard_map(lambda x: x, mesh=mesh, in_specs=P(), out_specs=P(), check=True)
    return Observed(refusal(lambda: f(np.ones(2)), "non-empty mesh"), "ValueError: non-empty mesh")


NO_MESH_FOR_A_SPEC = deviation(
    "jax<0.8",
    error="RuntimeError",
    match="with_sharding_constraint requires a non-empty mesh",
    reason="the mesh of the shard_map was not a mesh for specs",
)
SPEC_OF_A_MANUAL_ARRAY = deviation(
    "jax>=0.8,<0.8.2",
    error="AssertionError",
    reason="the sharding was checked as that of an array of the compiler",
)


@probe(source="jax-ml/jax#23019", deviations=[NO_MESH_FOR_A_SPEC, SPEC_OF_A_MANUAL_ARRAY])
def empty_spec_in_a_map(env):
    """Within `shard_map` over all axes, a constraint to `P()` is accepted and does nothing."""
    u = numbers(env)
    fn = map_shards(env, lambda x: lax.with_sharding_constraint(2 * x, P()), P("x"), P("x"))
    return Observed(jax.jit(fn)(u), 2 * np.float64(u))
