"""The cache of this machine, and the shared one: statistics, pruning, verification."""
