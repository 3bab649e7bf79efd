import jax.numpy as jnp
import numpy as np

x = np.array([np.nan, -1, 0, 1], np.float32)
half = np.float32(0.5)
np.testing.assert_array_equal(jnp.heaviside(x, half), np.heaviside(x, half))
print("heaviside agrees with numpy")
