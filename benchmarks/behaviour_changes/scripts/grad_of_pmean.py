import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
from jax.experimental.shard_map import shard_map
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

mesh = Mesh(jax.devices()[:4], ("data",))


def step(w, x):
    grads = jax.grad(lambda w: jnp.mean(w * x))(w)
    return jax.lax.pmean(grads, "data")


f = shard_map(step, mesh=mesh, in_specs=(P(), P("data")), out_specs=P())
print(float(f(jnp.float32(1.0), jnp.arange(8.0))))
