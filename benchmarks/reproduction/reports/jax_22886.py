import time

import jax
import jax.numpy as jnp
import numpy as np

print("jax", jax.__version__, "on", jax.devices())
x = jnp.zeros((0, 3), jnp.int32)
mask = np.empty((0, 3), dtype=bool)
start = time.time()
print(np.asarray(x)[mask].shape, x[mask].shape)
print(f"took {time.time() - start:.4f} seconds")
