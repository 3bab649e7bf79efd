import jax
import jax.numpy as jnp

struct = jax.ShapeDtypeStruct((4, 2), jnp.float32)
struct.shape = (8, 2)
print(struct.shape)
