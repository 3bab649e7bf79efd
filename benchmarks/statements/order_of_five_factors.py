"""Products of five factors are taken in another order."""

import jax
import jax.numpy as jnp

sizes = {"a": 2, "b": 2, "d": 13, "e": 2, "f": 8}
factors = "fb,da,eb,df,eb".split(",")
args = [jnp.ones([sizes[name] for name in factor]) for factor in factors]
jaxpr = jax.make_jaxpr(lambda *args: jnp.einsum(",".join(factors) + "->f", *args))(*args)
inner = jaxpr.eqns[0].params.get("jaxpr", jaxpr).eqns
print([e.outvars[0].aval.shape for e in inner if e.primitive.name == "dot_general"])
