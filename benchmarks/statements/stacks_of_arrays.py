"""Functions that stack take lists of arrays, as `jnp.array` and `block` take lists of lists."""

import jax.numpy as jnp

rows = [[1, 2], [3, 4]]
arrays = [jnp.array(row) for row in rows]
for name in ("stack", "vstack", "hstack", "dstack", "column_stack", "concatenate"):
    print(name, getattr(jnp, name)(arrays).tolist())
print(jnp.array(rows).tolist(), jnp.block(rows).tolist())
