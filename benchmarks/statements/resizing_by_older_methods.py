"""Images resized by the methods that exist on both sides."""

import jax
import jax.numpy as jnp

x = jnp.arange(12.0).reshape(3, 4) ** 2
for method in ("nearest", "linear", "cubic", "lanczos3", "lanczos5"):
    for shape in ((6, 8), (2, 3)):
        print(method, shape, jax.image.resize(x, shape, method).round(2).tolist())
    print(jax.image.resize(x, (2, 3), method, antialias=False).round(2).tolist())
