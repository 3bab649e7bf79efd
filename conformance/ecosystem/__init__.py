"""Libraries that build on JAX: their definitions, outcomes by release, and sets that work."""
