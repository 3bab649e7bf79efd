"""Running what is none of ours: a script, a test, a command, in the environment of a cell."""
