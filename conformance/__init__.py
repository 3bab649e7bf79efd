"""jax-conformance: what a JAX version really does, before you ship on it."""

__version__ = "0.1.0"
