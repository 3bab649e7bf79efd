import functools

import jax
import jax.numpy as jnp


@functools.singledispatch
def as_field(x):
    raise NotImplementedError(type(x).__name__)


@as_field.register
def _(x: jnp.ndarray):
    return x * 2


print(as_field(jnp.ones(2)))
print(jax.jit(as_field)(jnp.ones(2)))
