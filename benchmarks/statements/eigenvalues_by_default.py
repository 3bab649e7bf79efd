"""Eigenvalues and eigenvectors without the option."""

import jax.numpy as jnp

x = jnp.array([[4.0, 1, 2], [1, 3, 0], [2, 0, 5]])
values, vectors = jnp.linalg.eigh(x)
print(values.round(4).tolist(), abs(vectors).round(4).tolist())
print(jnp.linalg.eigvalsh(x, UPLO="U").round(4).tolist())
