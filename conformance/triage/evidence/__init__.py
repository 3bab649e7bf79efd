"""What there is to say of a root cause: since when, by what, and how to see it."""
