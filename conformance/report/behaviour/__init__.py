"""The history and the state of JAX's behaviour, as goldens and declared changes have them."""
