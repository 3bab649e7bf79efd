"""Values of the functions that become ufuncs, also of lists, and under transformations."""

import jax
import jax.numpy as jnp

for name in ("add", "multiply", "logical_and", "bitwise_or", "subtract", "maximum", "minimum"):
    print(name, getattr(jnp, name)(jnp.array([1, 2, 4]), jnp.array([3, 0, 4])).tolist())
for call in (lambda: jnp.add([1, 2], [3, 4]), lambda: jnp.add(x=1, y=2)):
    try:
        print(call())
    except TypeError as error:
        print(type(error).__name__)
print(jax.grad(jnp.multiply)(2.0, 3.0), jax.vmap(jnp.add)(jnp.arange(2), jnp.arange(2)).tolist())
print(jax.jit(jnp.add)(1, 2), jnp.add.__name__)
