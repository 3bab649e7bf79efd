"""Sums under an explicit mesh without `out_sharding`."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P


def put(mesh, shape, *spec):
    x = np.arange(float(np.prod(shape))).reshape(shape)
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


def show(f, *args):
    try:
        out = f(*args)
        print(tuple(out.sharding.spec), out.shape)
    except Exception as error:
        print(type(error).__name__)


def mesh_of(shape, names):
    mesh = jax.make_mesh(shape, names, axis_types=(AxisType.Explicit,) * len(shape))
    enter = getattr(jax.sharding, "use_mesh", None) or jax.set_mesh
    return mesh, enter(mesh)


mesh, context = mesh_of((2, 2), ("x", "y"))
with context:
    show(jax.jit(lambda x: jnp.sum(x)), put(mesh, (8,), "x"))
    show(jax.jit(lambda x: jax.lax.reduce_sum(x, axes=(0,))), put(mesh, (8, 2), ("x", "y")))
