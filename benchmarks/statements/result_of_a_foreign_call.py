"""A result of 64 bits is rounded to 32 bits up to 0.8.3; what is no type is another error."""

import jax
import numpy as np

print(jax.eval_shape(lambda: jax.ffi.ffi_call("f", jax.ShapeDtypeStruct((), np.int64))()).dtype)
try:
    jax.ffi.ffi_call("f", None)()
except Exception as error:
    print(type(error).__name__)
