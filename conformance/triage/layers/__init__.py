"""Which layer of JAX makes a difference: the front end, the compiler, or neither."""
