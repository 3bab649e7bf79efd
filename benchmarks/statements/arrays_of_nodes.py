"""A list of nodes with `__jax_array__` is refused up to 0.8.0."""

import jax
import jax.numpy as jnp
import numpy as np


class Node:
    def __init__(self, x):
        self.x = x

    def __jax_array__(self):
        return jnp.asarray(self.x)


jax.tree_util.register_pytree_node(Node, lambda n: ((n.x,), None), lambda _, x: Node(*x))
one = Node(np.arange(3.0))
print(jnp.array(one).tolist(), jnp.asarray(one).tolist())
try:
    print(jnp.array([one, one]).tolist())
except TypeError as error:
    print(type(error).__name__)
