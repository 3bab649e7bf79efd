"""Small programs that a pass makes deviate, to the last bit, from what they say."""

import jax
import jax.numpy as jnp
import numpy as np

from conformance.kit import Program, program

X = np.linspace(0.1, 7.7, 64, dtype=np.float32)


@program(rtol=0.0, atol=0.0)
def division(env):
    """A division by a constant that becomes a multiplication."""
    return Program(lambda x: x / 3.0, args=(X,), reference=lambda x: x / np.float32(3))


@program(rtol=0.0, atol=0.0)
def both(env):
    """That, and a product and a sum that are fused into one operation that rounds once."""

    def reference(x, y):
        return x / np.float32(3), x * y + x

    return Program(lambda x, y: (x / 3.0, x * y + x), args=(X, np.sqrt(X)), reference=reference)


@program(rtol=0.0, atol=0.0)
def loop(env):
    """The division among a loop, a product of matrices and random numbers: more passes act."""
    a = np.full((16, 16), 0.01, np.float32)

    def fn(x, a):
        c = jax.lax.while_loop(lambda c: jnp.sum(c) > 1, lambda c: jnp.tanh(c @ a), a)
        noise = jax.random.uniform(jax.random.key(0), (4,))
        return x / 3.0 + 0 * (jnp.sum(c) + jnp.sum(noise))

    return Program(fn, args=(X, a), reference=lambda x, _: x / np.float32(3))
