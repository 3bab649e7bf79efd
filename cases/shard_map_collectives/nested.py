"""Meshes of which a part is manual, and maps within maps.

Axes that a map leaves to the compiler (`auto=`, later all but `axis_names=`) were long
experimental: what ran, ran under jit only and often without the check. From 0.6.1 a map within a
map makes further axes manual; its mesh is the one around it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, Program, deviation, probe, program
from conformance.kit.endings import ending

from ._helpers import mapped, numbers


def wide_mesh(env):
    """Return a mesh of two by four devices, axes `a` and `b`."""
    return env.mesh((2, 4), ("a", "b"))


def partly(env, f, in_specs, out_specs, *, check=True):
    """Return `f` mapped over axis `a`, while `b` is left to the compiler."""
    return mapped(env, f, in_specs, out_specs, check=check, mesh=wide_mesh(env), manual=("a",))


def inner(env, f, in_specs, out_specs, *, check=True):
    """Return `f` mapped over axis `b`, to be called within a map over `a`."""
    if hasattr(jax, "shard_map"):
        return jax.shard_map(
            f, in_specs=in_specs, out_specs=out_specs, axis_names={"b"}, check_vma=check
        )
    return mapped(env, f, in_specs, out_specs, check=check, mesh=wide_mesh(env), manual=("b",))


@program(
    source="jax-ml/jax#16843",
    devices=8,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 1}},
    deviations=[
        deviation(
            "jax<0.7",
            platform="cpu",
            outcome="ok",
            match="collectives",
            reason="the partitioner before Shardy gathered the result along the automatic axis",
        )
    ],
)
def sum_over_the_manual_axis(env, check):
    """A sum over one axis of the mesh by hand, of columns that lie along the other."""
    fn = partly(env, lambda x: lax.psum(jnp.sin(x), "a"), P("a"), P(), check=check)
    x = numbers(env, 4, 8)
    placed = env.put(x, NamedSharding(wide_mesh(env), P("a", "b")))

    def exact(x):
        return np.sin(x.astype(np.float64)).reshape(2, 2, 8).sum(0)

    return Program(fn, args=(placed,), reference=exact)


@program(source="jax-ml/jax#16843", devices=8, facts={"collectives": {"all-reduce": 2}})
def sums_by_hand_and_by_compiler(env):
    """A matrix product whose rows are summed by hand, whose inner dimension by the compiler."""

    def body(x, y):
        return lax.psum((x @ y).sum(0), "a")

    mesh = wide_mesh(env)
    x = env.put(numbers(env, 4, 8), NamedSharding(mesh, P("a", "b")))
    y = env.put(numbers(env, 8, 3, seed=1), NamedSharding(mesh, P("b")))
    fn = partly(env, body, (P("a"), P()), P())
    return Program(fn, args=(x, y), reference=lambda x, y: (x.astype(np.float64) @ y).sum(0))


@probe(
    source="jax-ml/jax#15780",
    devices=8,
    deviations=[
        deviation(
            "jax<0.4.38",
            error="XlaRuntimeError",
            match="PartitionId instruction is not supported",
            reason="the number of a shard was asked of the device, which the compiler had split",
            issue="jax-ml/jax@0e7f218eb0d4",
        )
    ],
)
def number_within_the_manual_axis(env):
    """`axis_index` where another axis is automatic: not compiled up to 0.4.37."""
    x = numbers(env, 4, 8)

    def numbered(x, check):
        body = lambda x: 10 * x + lax.axis_index("a")  # noqa: E731 - short
        return partly(env, body, P("a"), P("a"), check=check)(x)

    seen = jax.jit(lambda x: [numbered(x, check=True), numbered(x, check=False)])(x)
    return Observed(seen, reference=[10 * x + np.repeat([0.0, 1.0], 2)[:, None]] * 2)


@probe(
    source="jax-ml/jax#30078",
    devices=8,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax<0.7",
            error="NotImplementedError",
            reason="it ran under jit only",
            issue="jax-ml/jax#30078",
        ),
        deviation(
            "jax>=0.7,<0.7.2",
            params=["check_off"],
            error="AssertionError",
            reason="without the check the result was split over the other axis as well",
            issue="jax-ml/jax#30078",
        ),
        deviation(
            "jax>=0.7.2,<0.12",
            params=["check_off"],
            error="ValueError",
            match="must refer to an axis marked as manual",
            reason="without the check the result was split over the other axis as well",
            issue="jax-ml/jax#30078",
        ),
    ],
)
def without_jit(env, check):
    """A partly manual map called as it is, not under jit."""
    x = numbers(env, 4, 8)
    fn = partly(env, lambda x: lax.psum(x, "a"), P("a"), P(), check=check)
    reference = x.astype(np.float64).reshape(2, 2, 8).sum(0)
    return Observed(fn(x), reference=reference)


@probe(
    source="jax-ml/jax#16843",
    devices=8,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax<0.5.1", outcome="ok", reason="traced, and refused by the check or by the compiler"
        ),
        deviation(
            "jax>=0.6,<0.8.2",
            params=["check_on"],
            outcome="ok",
            reason="refused by the types, as an axis that is not manual",
        ),
    ],
)
def name_of_an_automatic_axis(env, check):
    """A collective over an axis that is left to the compiler: its name is not bound."""
    fn = partly(env, lambda x: lax.psum(x, "b"), P("a"), P("a"), check=check)
    known = ("unbound axis name: b", "manual subgroups", "should be of type `Manual`", "varying")
    told = ending(jax.jit(fn), numbers(env, 4, 8), words=known)
    return Observed(told, reference="NameError: unbound axis name: b")


@program(
    source="jax-ml/jax#23019",
    devices=8,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    facts={"collectives": {"all-reduce": 2}},
    deviations=[
        deviation(
            "jax<0.6",
            params=["check_on"],
            error="AttributeError",
            match="process_shard_map",
            reason="the replication check knew no map within a map",
            issue="jax-ml/jax#23019",
        ),
        deviation(
            "jax==0.6.0",
            params=["check_on"],
            error="AssertionError",
            reason="the mesh around was not known within",
            issue="jax-ml/jax@2d8b568893cc",
        ),
        deviation(
            "jax>=0.5.1,<0.6.1",
            params=["check_off"],
            error="AssertionError",
            reason="the mesh around was not known within",
            issue="jax-ml/jax@2d8b568893cc",
        ),
    ],
)
def map_within_a_map(env, check):
    """Rows over one axis of the mesh, and within that columns over the other: two sums."""

    def body(x):
        columns = inner(env, lambda x: lax.psum(x, "b"), P(None, "b"), P(), check=check)(x)
        return lax.psum(columns**2, "a")

    def exact(x):
        blocks = x.astype(np.float64).reshape(2, 2, 4, 2)
        return (blocks.sum(2) ** 2).sum(0)

    fn = partly(env, body, P("a"), P(), check=check)
    return Program(fn, args=(numbers(env, 4, 8),), reference=exact)


@probe(
    source="jax-ml/jax#26588",
    devices=8,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax<0.6",
            params=["check_on"],
            error="AttributeError",
            match="process_shard_map",
            reason="the replication check knew no map within a map",
            issue="jax-ml/jax#23019",
        ),
        deviation(
            "jax==0.6.0",
            params=["check_on"],
            error="AssertionError",
            reason="the mesh around was not known within",
            issue="jax-ml/jax@2d8b568893cc",
        ),
        deviation(
            "jax>=0.5.1,<0.6.1",
            params=["check_off"],
            error="AssertionError",
            reason="the mesh around was not known within",
            issue="jax-ml/jax@2d8b568893cc",
        ),
        deviation(
            "jax<0.4.36",
            params=["check_off"],
            error="XlaRuntimeError",
            match="different manual subgroups",
            reason="the cotangent was summed over the axis left to the compiler too",
            issue="jax-ml/jax@2c9b917b9d01",
        ),
    ],
)
def gradient_through_both_maps(env, check):
    """Gradient, from outside, of a map within a map."""
    x = numbers(env, 4, 8)

    def body(x):
        columns = inner(env, lambda x: lax.psum(x, "b"), P(None, "b"), P(), check=check)(x)
        return lax.psum(columns**2, "a")

    fn = jax.jit(jax.grad(lambda x: partly(env, body, P("a"), P(), check=check)(x).sum()))
    sums = x.astype(np.float64).reshape(2, 2, 4, 2).sum(2, keepdims=True)
    return Observed(fn(x), reference=np.broadcast_to(2 * sums, (2, 2, 4, 2)).reshape(4, 8))


@probe(
    source="jax-ml/jax@2c9b917b9d01",
    devices=8,
    params={"check_on": {"check": True}, "check_off": {"check": False}},
    deviations=[
        deviation(
            "jax<0.4.36",
            params=["check_off"],
            error="XlaRuntimeError",
            match="different manual subgroups",
            reason="the cotangent was summed over the axis left to the compiler too",
            issue="jax-ml/jax@2c9b917b9d01",
        )
    ],
)
def gradient_of_a_shared_parameter(env, check):
    """Gradient of a parameter that all shards have, where one axis is automatic."""
    x = numbers(env, 4, 8)
    fn = partly(env, lambda w, x: w * x, (P(), P("a")), P("a"), check=check)
    gradient = jax.jit(jax.grad(lambda w: (fn(w, x) ** 2).sum()))
    return Observed(gradient(np.float32(2)), reference=4 * (x.astype(np.float64) ** 2).sum())


@probe(
    source="jax-ml/jax#16843",
    devices=8,
    params={
        "pmax": {"op": "pmax"},
        "all_gather": {"op": "all_gather"},
        "psum_scatter": {"op": "psum_scatter"},
        "ppermute": {"op": "ppermute"},
        "all_to_all": {"op": "all_to_all"},
    },
    deviations=[
        deviation(
            "jax<0.7",
            params=["all_gather", "all_to_all"],
            outcome="crashed",
            reason="the compiler ended the process",
        ),
        deviation(
            "jax<0.5",
            params=["ppermute"],
            outcome="crashed",
            reason="the compiler ended the process",
        ),
    ],
)
def over_the_manual_axis(env, op):
    """The other collectives over the manual axis, without the check; some ended the process."""
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
    fn = partly(env, body, P("a"), P("a"), check=False)
    return Observed(jax.jit(fn)(x), reference=reference)
