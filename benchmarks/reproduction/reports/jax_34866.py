from functools import partial
from itertools import chain

import jax
import jax.numpy as jnp

join = chain.from_iterable


@partial(jax.jit, static_argnums=range(3))
def pairs(sizes, dim=2, shift=(0, 0)):
    def run(p, head):
        if p == 1:
            return (head + [j] for j in range(head[-1] + shift[0], sizes[-1] - shift[1]))
        return join(run(p - 1, head + [j]) for j in range(head[-1] + shift[0], sizes[dim - p] - shift[1]))

    return jnp.array(tuple(join(run(dim - 1, [j]) for j in range(shift[0], sizes[0] - shift[1]))))


print(f"# JAX {jax.__version__}")
print(repr(pairs((4,) * 2, 2)))
