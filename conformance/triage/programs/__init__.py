"""Programs of the user: a script, a test or a command, run in the environment of a cell."""
