"""A mapped function has the name and docstring of its function, but on 0.8.0."""

import jax


def f(x):
    "Docstring of f."
    return x


mapped = jax.pmap(f)
print(mapped.__name__, mapped.__doc__, getattr(mapped, "__wrapped__", None) is f)
