"""Names, signatures and behaviour that a code base touches, held against the history of JAX."""
