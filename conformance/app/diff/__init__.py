"""The comparison of two files, two cells of a run, or two runs."""
