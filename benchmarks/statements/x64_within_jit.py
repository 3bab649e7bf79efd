"""A function that turns 64-bit types on for its own body, under jit."""

import jax

try:
    enable_x64 = jax.enable_x64  # from 0.8.0
    enable_x64(True)
except AttributeError:
    from jax.experimental import enable_x64


@jax.jit
def increased(x):
    """Return a number that is added with 64 bits."""
    with enable_x64(True):
        return 2 + x


try:
    print(increased(1).dtype)
except ValueError as error:
    print(str(error)[:20])
