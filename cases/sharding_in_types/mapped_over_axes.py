"""Functions on Explicit axes under vmap, drawn samples, and functions that leave Explicit axes."""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import refusal

from ._helpers import describe_outcome, format_spec, numbers, put

defaults(devices=4, platforms=("cpu",), releases="jax>=0.6")


def find_auto_axes():
    """Return `auto_axes`, which JAX moved."""
    if hasattr(jax.sharding, "auto_axes"):
        return jax.sharding.auto_axes
    return importlib.import_module("jax.experimental.shard").auto_axes


def split_keys(mesh):
    """Return typed keys, each on a device."""
    return put(mesh, jax.random.split(jax.random.key(0), 4), "x")


def draw(key):
    """Return three uniform numbers."""
    return jax.random.uniform(key, (3,))


BITS_ON_NO_MESH = deviation(
    "jax<0.10",
    error="ValueError",
    match="is not found in mesh",
    reason="the type of the random bits was not sharded",
    issue="jax-ml/jax@8266a4d7b003",
)


@probe(source="jax-ml/jax@8266a4d7b003", deviations=[BITS_ON_NO_MESH])
def drawn_for_each_key(env):
    """On Explicit axes, `jax.vmap` over sharded keys gives samples that are sharded as the keys."""
    mesh = env.mesh(4, "x", explicit=True)
    with env.compat.set_mesh(mesh):
        out = jax.jit(jax.vmap(draw))(split_keys(mesh))
    expected = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), 4))
    return Observed((format_spec(out), np.asarray(out)), ("['x']", np.asarray(expected)))


def convolve(x, **options):
    """Convolve a row of one channel with three ones."""
    kernel = np.ones((3, 1, 1), np.float32)
    numbers_of_axes = lax.ConvDimensionNumbers((0, 2, 1), (2, 1, 0), (0, 2, 1))
    rows = x[None, :, None]
    return lax.conv_general_dilated(
        rows, kernel, (1,), "SAME", dimension_numbers=numbers_of_axes, **options
    )[0, :, 0]


NO_LANES_WITH_A_SHARDING = deviation(
    "jax<0.8",
    outcome="raised",
    reason="vmap refused out_sharding, which is new in 0.7.2",
    issue="jax-ml/jax@79bb4507593b",
)


@probe(source="jax-ml/jax@79bb4507593b", deviations=[NO_LANES_WITH_A_SHARDING])
def mapped_convolution(env):
    """On Explicit axes, `jax.vmap` over sharded rows of a convolution with `out_sharding`."""
    mesh, x = env.mesh(4, "x", explicit=True), numbers(4, 4)
    f = jax.jit(jax.vmap(lambda row: convolve(row, out_sharding=P(None, None, None))))
    with env.compat.set_mesh(mesh):
        return Observed(format_spec(f(put(mesh, x, "x"))), "['x']")


@probe(source="jax-ml/jax@3eecb6a77d56", records="texts of errors")
def unmapped_but_sharded(env):
    """On Explicit axes, an argument that is not mapped may not be sharded over the mapped axis."""
    mesh = env.mesh(4, "x", explicit=True)
    rows, weights = put(mesh, numbers(4, 4), "x"), put(mesh, numbers(4), "x")
    scale = jax.vmap(lambda row, w: row.sum() * w.sum(), in_axes=(0, None))
    with env.compat.set_mesh(mesh):
        return describe_outcome(lambda: format_spec(scale(rows, weights)), words=9)


NO_SHARDING_OF_WEIGHTS = deviation(
    "jax<0.6.2",
    error="TypeError",
    match="out_sharding",
    reason="initializers had no such parameter",
    issue="jax-ml/jax@29e6647577ad",
)


@probe(source="jax-ml/jax@29e6647577ad", deviations=[NO_SHARDING_OF_WEIGHTS])
def initialized_weights(env):
    """Initializers take `out_sharding`: the weights are made with a sharding."""
    mesh, make = env.mesh(4, "x", explicit=True), jax.nn.initializers.he_normal()
    with env.compat.set_mesh(mesh):
        weights = make(jax.random.key(0), (4, 2), np.float32, out_sharding=P("x"))
    return Observed(format_spec(weights), "['x']")


WAYS = {
    "decorator": {"explicit": True, "decorator": True},
    "auto_mesh": {"explicit": False, "decorator": False},
}


NO_DECORATOR = deviation(
    "jax<0.7",
    params=["decorator"],
    outcome="raised",
    reason="the function was required",
    issue="jax-ml/jax@440f31f66cec",
)


AUTO_AXES_REFUSED = deviation(
    "jax<0.7.1",
    params=["auto_mesh"],
    outcome="raised",
    reason="Auto axes were refused",
    issue="jax-ml/jax@fcc09f53b0ca",
)


@probe(
    source="jax-ml/jax@440f31f66cec",
    params=WAYS,
    deviations=[NO_DECORATOR, AUTO_AXES_REFUSED],
)
def sharding_of_auto_axes(env, explicit, decorator):
    """`auto_axes` gives its result the requested sharding, also on Auto axes."""
    mesh, x = env.mesh(4, "x", explicit=explicit), numbers(4, 2)
    auto_axes, double = find_auto_axes(), lambda x: 2 * x
    with env.compat.set_mesh(mesh):
        if decorator:
            f = auto_axes(out_sharding=P("x"))(double)
        else:
            f = auto_axes(double, out_sharding=P("x"))
        out = jax.jit(f)(put(mesh, x, "x"))
    return Observed((format_spec(out), out), ("['x']", 2 * x))


AXIS_OF_THE_LANES_REFUSED = deviation(
    "jax>=0.6.2,<0.8.1",
    error="ValueError",
    match="should be of type `Manual`",
    reason="the residuals of the map varied over the axis of the lanes, which is not of the map",
    issue="jax-ml/jax@255c51784931",
)


@probe(
    source="jax-ml/jax@255c51784931",
    devices=4,
    releases="jax>=0.6.1",
    deviations=[AXIS_OF_THE_LANES_REFUSED],
)
def gradient_of_a_map_in_each_lane(env):
    """`vmap` over a sharded axis of the gradient through a shard_map over another Explicit axis."""
    mesh, a = env.mesh((2, 2), ("x", "y"), explicit=True), numbers(4, 4) / 8
    with env.compat.set_mesh(mesh):
        f = env.compat.shard_map(
            jnp.sin, mesh=None, in_specs=P("y"), out_specs=P("y"), axis_names=["y"]
        )
        out = jax.jit(jax.vmap(jax.grad(lambda row: f(row).sum())))(put(mesh, a, "x", "y"))
    return Observed((format_spec(out), out), ("['x', 'y']", np.cos(a)))


NAME_FORGOTTEN = deviation(
    "jax>=0.8.2",
    params=["after_explicit_axes"],
    outcome="ok",
    reason="the call with lanes on an Explicit axis sets the name to None for all later calls",
    issue="jax-ml/jax@f2a50525668b",
)


@probe(
    source="jax-ml/jax@f2a50525668b",
    devices=2,
    params={"first_call": {"explicit": False}, "after_explicit_axes": {"explicit": True}},
    deviations=[NAME_FORGOTTEN],
)
def name_of_the_axis_of_lanes(env, explicit):
    """The lanes of `vmap(f, spmd_axis_name="x")` stay on the axis x in a later call.

    From 0.8.2 on they are silently copied to all devices, if the same function was called with
    lanes on an Explicit axis x before, also if that call was refused.
    """
    whole = jax.sharding.NamedSharding(env.mesh(2, "x"), P(None))
    fn = jax.vmap(lambda row: lax.with_sharding_constraint(row, whole), spmd_axis_name="x")
    if explicit:
        refusal(lambda: fn(put(env.mesh(2, "x", explicit=True), numbers(2, 4), "x")))
    return Observed(format_spec(jax.jit(fn)(np.asarray(numbers(2, 4)))), "['x']")
