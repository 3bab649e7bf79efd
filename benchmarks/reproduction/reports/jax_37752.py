import jax
import jax.numpy as jnp
import numpy as np

print(jax.__version__)
x = np.arange(-2, 3, dtype=np.float32)
zero = 0 * np.ones(5, np.float32)
with np.errstate(all="ignore"):
    print("numpy", np.floor_divide(x, zero))
print("jax  ", jnp.floor_divide(x, zero))
