"""Varying axes are printed by their names up to 0.7.2, in the order of the mesh from 0.8.0."""

import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def f(x):
    print(jax.typeof(x))
    return x


mesh = jax.make_mesh((2, 2), ("z", "a"))
jax.shard_map(f, mesh=mesh, in_specs=P(("a", "z")), out_specs=P(("a", "z")))(jnp.arange(4.0))
