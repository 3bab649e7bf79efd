"""A jaxpr as readable JAX code."""
