import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

mesh = Mesh(jax.devices()[:1], ("x",))
with jax.sharding.use_mesh(mesh):
    x = jax.device_put(jnp.arange(8.0), NamedSharding(mesh, P("x")))
    print(jax.jit(jnp.sum)(x))
