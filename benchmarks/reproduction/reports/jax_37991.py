import jax.numpy as jnp
import numpy as np

x = np.array([-1, 0, 1], dtype=np.int32)
print("numpy", np.cumsum(x, dtype=bool))
print("jax  ", jnp.cumsum(x, dtype=bool))
