"""Code that runs inside a cell."""
