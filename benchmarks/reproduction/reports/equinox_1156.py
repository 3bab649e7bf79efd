import equinox as eqx
import jax.numpy as jnp


@eqx.filter_jit
def checked(x):
    return eqx.error_if(x, x < 0, "x is negative")


print(checked(jnp.array(1.0)))
try:
    checked(jnp.array(-1.0))
except Exception as e:
    print("raised", type(e).__name__)
