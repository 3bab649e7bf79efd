import jax
import jax.numpy as jnp

key = jax.random.key(7)
draws = jax.random.randint(key, (8,), 0, 200, dtype=jnp.uint8)
print(draws)
