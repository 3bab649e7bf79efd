"""A function that is exported twice, and lowered between."""

import jax
import jax.numpy as jnp
from jax import export

f, x = jax.jit(lambda x: x + 1), jax.ShapeDtypeStruct((4,), jnp.float32)
before, first = f.lower(x).as_text(), export.export(f)(x)
after, second = f.lower(x).as_text(), export.export(f)(x)
print(before == after, first.mlir_module() == second.mlir_module(), second.call(jnp.ones(4)))
