"""Loops where only some axes are manual, in maps in maps, and without jit.

The axes that shard_map leaves to the compiler go through a loop's body as well. And without
`jit` a loop inside shard_map is compiled by itself, with its own idea of what varies.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding

from conformance.kit import Observed, Program, deviation, probe, program

from ._helpers import P, mapped, numbers


@program(
    source="jax-ml/jax#23019",
    devices=4,
    params={"check_off": {"check": False}},
)
def scan_with_one_manual_axis(env, check):
    """A scan over shards of x whose rows stay spread over y, by the compiler's means."""
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


@probe(
    source="jax-ml/jax#23019",
    devices=4,
    params={"map": {"loop": "map"}, "while": {"loop": "while"}},
    deviations=[
        deviation(
            "jax<0.5.1",
            outcome="crashed",
            params=("map",),
            reason="the partitioner of XLA aborted on the index of a loop",
            issue="jax-ml/jax#23019",
        ),
        deviation(
            "jax<0.4.33",
            outcome="crashed",
            params=("while",),
            reason="the partitioner of XLA aborted on a loop that is manual in part",
            issue="jax-ml/jax#23019",
        ),
    ],
)
def loop_with_one_manual_axis(env, loop):
    """`map` or `while` with x manual and y left to the compiler, the check off."""
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


@probe(
    source="jax-ml/jax#15780",
    devices=4,
    params={"check_off": {"check": False}},
    deviations=[
        deviation(
            "jax<0.4.38",
            error="XlaRuntimeError",
            match="PartitionId instruction is not supported",
            reason="the index was lowered to an instruction that only a full map may use",
            issue="jax-ml/jax#15780",
        ),
        deviation(
            "jax>=0.5.3,<0.8.1",
            outcome="crashed",
            reason="the compiler ended the process",
            issue="jax-ml/jax#23019",
        ),
    ],
)
def index_with_one_manual_axis(env, check):
    """`axis_index` in the body of a scan, x manual, y left to the compiler."""
    mesh = env.mesh((2, 2), ("x", "y"))

    def shard(u):
        return lax.scan(lambda c, _: (c + lax.axis_index("x"), None), u, None, length=3)[0]

    fn = env.compat.shard_map(
        shard, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check=check, axis_names=["x"]
    )
    u = numbers(env)
    return Observed(jax.jit(fn)(u), u + np.float64(np.repeat([0, 3], 8)))


@probe(
    source="jax-ml/jax#23019",
    devices=4,
    deviations=[
        deviation(
            "jax<0.5.1",
            outcome="crashed",
            reason="the partitioner of XLA aborted on the index of a loop",
            issue="jax-ml/jax#23019",
        ),
        deviation(
            "jax>=0.5.1,<0.6.1",
            error="AssertionError",
            reason="a map in a map, over a mesh of devices, was asserted against",
            issue="jax-ml/jax#23019",
        ),
    ],
)
def map_in_a_map(env):
    """The report's nesting: a scan over x calls a function mapped over y, which sums there."""
    mesh = env.mesh((2, 2), ("x", "y"))

    def inner(row):
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


@probe(
    source="jax-ml/jax#18632",
    devices=4,
    params={"scan": {"which": "scan"}, "while": {"which": "while"}},
    deviations=[
        deviation(
            "jax<0.6",
            params=("while",),
            error="NotImplementedError",
            match="No replication rule for while",
            reason="the replication check knew no while; switch it off there",
            issue="jax-ml/jax#27664",
        )
    ],
)
def without_jit(env, which):
    """A loop in shard_map that is not under jit, with a mean over shards inside."""

    def shard(u):
        if which == "scan":
            return lax.scan(lambda c, _: (c + lax.pmean(c, "x"), None), u, None, length=2)[0]
        body = lambda c: (c[0] + lax.pmean(c[0], "x"), c[1] + 1)  # noqa: E731
        return lax.while_loop(lambda c: c[1] < 2, body, (u, jnp.int32(0)))[0]

    u = numbers(env)
    mean = np.tile(np.float64(u).reshape(4, 4).mean(0), 4)
    return Observed(mapped(env, shard)(u), u + 3 * mean)


@probe(
    source="jax-ml/jax#27673",
    devices=4,
    platforms=("cpu",),
    deviations=[
        deviation(
            "jax<0.4.34",
            error="ValueError",
            reason="None was for arguments that are no arrays, if at all",
            issue="jax-ml/jax#22043",
        ),
        deviation(
            "jax>=0.4.38,<0.6",
            error="TypeError",
            match="'NoneType' object is not iterable",
            reason="the check of several results took the names of a None, without jit",
            issue="jax-ml/jax#27673",
        ),
    ],
)
def spec_of_none(env):
    """`in_specs=(None,)` hands an array over whole and unchecked: two results fail without jit."""
    x = numbers(env)
    f = mapped(env, lambda u: jnp.split(u, 2), (None,))
    return Observed(f(x), [np.tile(half, 4) for half in np.split(x, 2)])
