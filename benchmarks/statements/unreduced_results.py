"""Einsums with an unreduced result that 0.7.2 refuses, and one that it does not."""

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
    f = lambda spec, out, *args: show(lambda *a: jnp.einsum(spec, *a, out_sharding=out), *args)
    f(
        "ij,jk->ik",
        P(None, None, unreduced={"x"}),
        put(mesh, (2, 4), None, "x"),
        put(mesh, (4, 2), "x"),
    )
    f(
        "heb,eba->hea",
        P(None, "x", None, unreduced={"y"}),
        put(mesh, (6, 4, 8), None, "x", "y"),
        put(mesh, (4, 8, 10), "x", "y"),
    )
    f(
        "ij,i->j",
        P(None, unreduced={"x", "y"}),
        put(mesh, (8, 2), ("x", "y")),
        put(mesh, (8,), ("x", "y")),
    )
    f(
        "bd,df,fd->bd",
        P("x", None, unreduced={"y"}),
        put(mesh, (2, 4), "x"),
        put(mesh, (4, 6), None, "y"),
        put(mesh, (6, 4), "y"),
    )
