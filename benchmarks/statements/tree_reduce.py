"""Reductions of trees by the function that exists on both sides."""

import jax

tree = {"a": [1, 2], "b": (3, None, [4])}
print(jax.tree.reduce(lambda x, y: x + y, tree), jax.tree.reduce(lambda x, y: x - y, tree, 100))
print(jax.tree.reduce(max, [], 0))
