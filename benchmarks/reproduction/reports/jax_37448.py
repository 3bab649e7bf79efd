import jax.numpy as jnp
import numpy as np

p = np.array([3, 2, 1], dtype=np.int16)
x = np.array([1, 2, 3], dtype=np.int16)
print(jnp.polyval(p, x).dtype, jnp.polyval(p, x))
