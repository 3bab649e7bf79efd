import jax
import jax.numpy as jnp

closed = jax.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0)
kinds = [isinstance(e, jax.core.JaxprEqn) for e in closed.jaxpr.eqns]
print(jax.__version__, len(kinds), all(kinds))
