import jax
from jax.typing import ArrayLike


@jax.jit
def f(x):
    print("Array:", isinstance(x, jax.Array), " ArrayLike:", isinstance(x, ArrayLike))
    return x


f(1.0)
