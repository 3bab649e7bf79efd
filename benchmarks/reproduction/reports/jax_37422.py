import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_debug_infs", True)

q = jnp.zeros((5, 6, 8), jnp.float64)
kv = jnp.zeros((7, 3, 8), jnp.float64)
keep = jnp.arange(7) <= 3
out = jax.nn.dot_product_attention(q, kv, kv, mask=keep)
print(out.block_until_ready().shape)
