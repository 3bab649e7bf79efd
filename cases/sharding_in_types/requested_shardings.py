"""Shardings that a call asks for, and meshes with names and sizes that make no sense."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import mesh_utils
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

from conformance.kit import Observed, defaults, deviation, probe
from conformance.kit.endings import ending, refusal

from ._helpers import numbers

defaults(devices=4, platforms=("cpu",))

REQUESTS = {
    "broadcast_to": lambda x: jnp.broadcast_to(x, (4, 2, 3), out_sharding=P("x")),
    "einsum": lambda x: jnp.einsum("ijk->ij", x, out_sharding=P("x")),
}
BROADCAST_IGNORED_IT = deviation(
    "jax<0.7.2",
    params=["broadcast_to"],
    outcome="ok",
    reason="an array that had the shape was returned at once",
)
EINSUM_IGNORED_IT = deviation(
    "jax<0.8",
    params=["einsum"],
    outcome="ok",
    reason="a sum of a single array did not read the argument",
)


@probe(
    source="jax-ml/jax@3dc85d87b393",
    releases="jax>=0.7",
    params=[*REQUESTS],
    deviations=[BROADCAST_IGNORED_IT, EINSUM_IGNORED_IT],
)
def requested_sharding(env, name):
    """`out_sharding` of `jnp.broadcast_to` to the same shape is obeyed from 0.7.2 on.

    That of a sum by `jnp.einsum` is obeyed from 0.8.0 on. Before, both silently ignored it.
    """
    with env.compat.set_mesh(env.mesh(4, "x", explicit=True)):
        result = REQUESTS[name](jnp.asarray(numbers(4, 2, 3)))
    entries = [entry for entry in getattr(result.sharding, "spec", ()) if entry is not None]
    return Observed({"spec": str(entries)}, reference={"spec": "['x']"})


NAMES_MUST_DIFFER = deviation(
    "jax==0.5.0",
    outcome="ok",
    match="ValueError",
    reason="the names became keys of a table, whose size was compared",
)


@probe(source="jax-ml/jax@41f490aef4c8", deviations=[NAMES_MUST_DIFFER])
def mesh_that_names_an_axis_twice(env):
    """A `Mesh` with two axes of the same name is accepted, except in 0.5.0."""
    devices = np.array(jax.devices()[:4]).reshape(2, 2)
    return Observed(ending(lambda: Mesh(devices, ("x", "x")) and 0), reference="accepted")


FRACTION_DROPPED = deviation(
    "jax>=0.4.36",
    outcome="ok",
    match="ran",
    reason="a size is converted to an integer",
    issue="jax-ml/jax@456dfeb0aebd",
)


@probe(source="jax-ml/jax@456dfeb0aebd", releases="jax>=0.4.34", deviations=[FRACTION_DROPPED])
def size_with_a_fraction(env):
    """A mesh of 2.5 by 2 devices silently has two by two from 0.4.36 on; before, a ValueError."""
    made = [
        refusal(lambda: mesh_utils.create_device_mesh((2.5, 2)), "Number of devices"),
        refusal(lambda: jax.make_mesh((2.5, 2), ("x", "y")), "Number of devices"),
    ]
    return Observed(made, 2 * ["ValueError: Number of devices"])


KINDS_MUST_BE_EQUAL = deviation(
    "jax<0.7",
    error="ValueError",
    match="same in a tuple subset",
    reason="the axes of one dimension had to be of one type",
    issue="jax-ml/jax@35009ab76d90",
)


@probe(source="jax-ml/jax@35009ab76d90", releases="jax>=0.6", deviations=[KINDS_MUST_BE_EQUAL])
def explicit_and_auto_for_one_dimension(env):
    """A dimension may be sharded over an Explicit and an Auto axis from 0.7.0 on.

    Its type has the Explicit axis alone.
    """
    kinds = (jax.sharding.AxisType.Explicit, jax.sharding.AxisType.Auto)
    devices = np.array(jax.devices()[:4]).reshape(2, 2)
    mesh = Mesh(devices, ("x", "y"), axis_types=kinds)
    x = jax.device_put(numbers(8), jax.sharding.NamedSharding(mesh, P(("x", "y"))))
    shapes = [shard.data.shape for shard in x.addressable_shards]
    observed = {"shards": shapes, "type": str(jax.typeof(x))}
    return Observed(observed, {"shards": 4 * [(2,)], "type": "float32[8@x]"})
