import jax
import jax.numpy as jnp

compiled = jax.jit(jnp.dot).lower(jnp.ones((4, 4)), jnp.ones((4, 4))).compile()
print(compiled.cost_analysis()[0]["flops"] > 0)
