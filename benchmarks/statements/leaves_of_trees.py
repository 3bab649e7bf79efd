"""`is_leaf` of the functions that give paths, without `is_leaf_takes_path`."""

from jax import tree_util

tree = {"a": [1, 2], "b": 3}
is_leaf = lambda x: isinstance(x, list)
leaves, definition = tree_util.tree_flatten_with_path(tree, is_leaf)
print([(tree_util.keystr(path), leaf) for path, leaf in leaves], definition)
print(tree_util.tree_map_with_path(lambda _, x: str(x), tree, is_leaf=is_leaf))
