import jax
import jax.numpy as jnp
from jax.scipy import special

print("jax", jax.__version__)
with jax.checking_leaks():
    y = special.expi(jnp.ones(()))
print(f"{float(y):.3f}")
