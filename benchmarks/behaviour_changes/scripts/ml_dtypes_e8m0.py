import jax.numpy as jnp
import ml_dtypes

print(jnp.dtype(ml_dtypes.float8_e8m0fnu).itemsize)
