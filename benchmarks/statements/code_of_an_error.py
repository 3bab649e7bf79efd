"""An unknown code of an error is an `IndexError` up to 0.9.0.1. No public function makes one."""

import jax.numpy as jnp
from jax._src import error_check

f = error_check.unwrap_from_import(lambda x: (x, error_check._ErrorClass(jnp.uint32(999), [])))
f(jnp.float32(1))
try:
    error_check.raise_if_error()
except Exception as error:
    print(type(error).__name__)
