"""They raise `TracerBoolConversionError` up to 0.10.2, then `ConcretizationTypeError`."""

import jax
import jax.numpy as jnp

x = jnp.ones(4)
for f in (jnp.compress, jnp.extract):
    try:
        print(jax.jit(f)(x > 0, x))
    except Exception as error:
        print(type(error).__name__)
