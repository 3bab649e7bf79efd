"""A function that becomes a ufunc is no wrapped jit any more."""

import inspect

import jax.numpy as jnp

print(type(jnp.add).__name__, hasattr(jnp.add, "lower"), inspect.isroutine(jnp.add))
