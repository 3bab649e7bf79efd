"""Code that runs inside a cell: a pytest plugin, and the processes around it."""
