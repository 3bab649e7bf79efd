"""What a tree that is a prefix of another does on both sides."""

import jax
import jax.numpy as jnp

tree = {"a": [1, 2], "b": 3}
print(jax.tree.map(lambda x, y: (x, y), tree, {"a": ["p", "q"], "b": ["r", "s"]}))
print(
    jax.vmap(lambda t: t["a"][0] + t["b"], in_axes=({"a": 0, "b": None},))(
        {"a": [jnp.arange(2), jnp.arange(2)], "b": 3}
    )
)
try:
    jax.tree.map(lambda x, y: x, tree, {"a": 0, "b": 0})
except ValueError as error:
    print(str(error).splitlines()[0])
