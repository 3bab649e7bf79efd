import jax

params = {"w": 1.0, "b": 2.0}
print(jax.tree_map(lambda leaf: leaf * 2, params))
