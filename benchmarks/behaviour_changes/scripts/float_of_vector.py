import jax.numpy as jnp
import numpy as np

loss = np.asarray(jnp.ones(1))
print(float(loss))
