import jax
import jax.numpy as jnp
from jax.experimental import io_callback
from jax.scipy.sparse.linalg import cg


def matvec(v):
    return io_callback(lambda v: 2 * v, jax.ShapeDtypeStruct(v.shape, v.dtype), v, ordered=True)


b = jnp.ones(3)
print(jax.jit(lambda b: cg(matvec, b)[0])(b))
