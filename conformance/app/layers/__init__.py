"""The layer behind a difference: tracing, lowering, XLA or the runtime."""
