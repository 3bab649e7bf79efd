"""Known failures of a suite: declarations, and their update from the results of runs."""
