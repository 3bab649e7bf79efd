"""Paths of trees by the functions that exist on both sides."""

import jax
from jax import tree_util

tree = {"a": [1, 2], "b": (3, None)}
leaves, definition = tree_util.tree_flatten_with_path(tree)
print([(tree_util.keystr(path), leaf) for path, leaf in leaves], definition)
print(tree_util.tree_map_with_path(lambda path, leaf: (tree_util.keystr(path), leaf), tree))
print(jax.tree.leaves(tree), jax.tree.structure(tree))
