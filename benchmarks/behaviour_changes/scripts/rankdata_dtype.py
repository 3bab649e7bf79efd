import jax.numpy as jnp
from jax.scipy.stats import rankdata

print(rankdata(jnp.array([3, 1, 2]), method="min").dtype)
