import jax
import jax.numpy as jnp
from jax.experimental import host_callback as hcb


@jax.jit
def f(x):
    return hcb.id_tap(lambda value, _: None, x) + 1


print(f(jnp.float32(1.0)))
