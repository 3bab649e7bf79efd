"""Calls of pmap, callbacks, inner jits and their gradients, where a mesh is in play."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe

from ._helpers import SHARDS, numbers

defaults(devices=4, platforms=("cpu",))

PMAP_HAS_A_MESH = deviation(
    "jax>=0.8",
    error="ValueError",
    match="should match the mesh passed to shard_map",
    reason="pmap is a shard_map over a mesh of its own",
    issue="jax-ml/jax@aa2f995b1db5",
)


@probe(source="jax-ml/jax@aa2f995b1db5", deviations=[PMAP_HAS_A_MESH])
def pmap_in_the_context(env):
    """In the context of a mesh, `jax.pmap` is a ValueError from 0.8.0 on."""
    with env.compat.set_mesh(env.mesh(SHARDS, "x")):
        result = jax.pmap(lambda x: 2 * x)(numbers(SHARDS, 2))
    return Observed(result, 2 * numbers(SHARDS, 2))


RESULT_HAS_A_MANUAL_SHARDING = deviation(
    "jax>=0.6",
    error="AssertionError",
    match="Unhandled OpSharding type",
    reason="the sharding of the result, a single device, is not translated to the mesh",
)


@probe(source="jax-ml/jax@9bb971f3ba62", deviations=[RESULT_HAS_A_MANUAL_SHARDING])
def callback_in_the_context(env):
    """In the context of a mesh, `jax.pure_callback` fails from 0.6.0 on: an AssertionError."""
    struct = jax.ShapeDtypeStruct((8,), np.float32)
    with env.compat.set_mesh(env.mesh(SHARDS, "x")):
        result = jax.pure_callback(lambda x: np.asarray(2 * x), struct, numbers(8))
    return Observed(result, 2 * numbers(8))


INNER_IGNORED = deviation(
    "jax<0.6",
    outcome="ok",
    reason="the inner function returns its argument, which took the place of its result",
)


@probe(source="jax-ml/jax@dbc3bcd3cebd", deviations=[INNER_IGNORED])
def inner_function_that_returns_its_argument(env):
    """`in_shardings` of an inner jit that returns its argument are obeyed from 0.6.0 on.

    Before, they were silently ignored, and the result was on one device.
    """
    rows = NamedSharding(env.mesh(SHARDS, "x"), P("x"))
    inner = jax.jit(lambda x: x, in_shardings=rows)
    result = jax.jit(lambda x: 2 * inner(x))(numbers(8))
    return Observed({"devices": len(result.sharding.device_set)}, {"devices": SHARDS})


COTANGENT_ON_ONE_DEVICE = deviation(
    "jax<0.5.1",
    error="ValueError",
    match="does not match the sharding on the respective arg",
    reason="the cotangent of the result was on one device, and committed to it",
)


@probe(source="jax-ml/jax@2d01df760bb1", deviations=[COTANGENT_ON_ONE_DEVICE])
def gradient_with_out_shardings(env):
    """The gradient of a sum of a jitted function with `out_shardings` runs from 0.5.1 on."""
    rows = NamedSharding(env.mesh(SHARDS, "x"), P("x"))
    square = jax.jit(lambda x: x**2, out_shardings=rows)
    return Observed(jax.grad(lambda x: square(x).sum())(numbers(8)), 2 * numbers(8))


NAMES_IN_THE_TYPE = deviation(
    "jax>=0.5.1",
    outcome="ok",
    reason="the type of the argument has the mesh with its names",
    issue="jax-ml/jax@00d8297071a4",
)


@probe(source="jax-ml/jax@00d8297071a4", deviations=[NAMES_IN_THE_TYPE])
def traced_for_other_names(env):
    """A jitted function is traced again for a mesh with other names, from 0.5.1 on."""
    traces = []
    double = jax.jit(lambda x: traces.append(1) or 2 * x)
    devices = np.array(jax.devices()[:SHARDS])
    for name in ("x", "z"):
        double(jax.device_put(numbers(8), NamedSharding(Mesh(devices, (name,)), P(name))))
    return Observed({"traces": len(traces)}, {"traces": 1})


EXPONENTS_WITHOUT_A_MESH = deviation(
    "jax>=0.12",
    outcome="ok",
    reason="the type of the exponents is made without a sharding",
)


@probe(source="jax-ml/jax@6355fac8822b", releases="jax>=0.6", deviations=[EXPONENTS_WITHOUT_A_MESH])
def exponents(env):
    """On Explicit axes, the exponents of `jnp.frexp` are silently not sharded from 0.12.0 on."""
    mesh = env.mesh(SHARDS, "x", explicit=True)
    x = jax.device_put(numbers(8), NamedSharding(mesh, P("x")))
    with env.compat.set_mesh(mesh):
        types = jax.make_jaxpr(jnp.frexp)(x).out_avals
    specs = [[entry for entry in kind.sharding.spec if entry is not None] for kind in types]
    return Observed(str(specs), "[['x'], ['x']]")
