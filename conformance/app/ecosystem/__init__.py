"""Libraries that build on JAX: tested on its releases, reported, and solved for a set."""
