import jax.numpy as jnp
import numpy as np

reach = np.array([[True, True], [False, True]])
print(np.linalg.matrix_power(reach, 2))
ours = jnp.linalg.matrix_power(reach, 2)
print(ours)
assert ours.dtype == bool, ours.dtype
