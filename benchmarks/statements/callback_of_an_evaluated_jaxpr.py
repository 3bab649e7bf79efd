"""`eval_jaxpr` of a vmapped callback at compile time is refused up to 0.7.2."""

import jax
import jax.numpy as jnp

shape = jax.ShapeDtypeStruct((), jnp.float32)
f = lambda x: jax.pure_callback(lambda x: x, shape, x, vmap_method="sequential")
jaxpr = jax.make_jaxpr(lambda: jax.vmap(f)(jnp.zeros(3)))()
try:
    with jax.ensure_compile_time_eval():
        print(jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts)[0].tolist())
except NotImplementedError as error:
    print(type(error).__name__)
