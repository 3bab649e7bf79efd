import jax
import jax.numpy as jnp


def f(x):
    return jnp.sum(jnp.linalg.qr(x)[1] ** 2)


print(jax.grad(f)(jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])).shape)
