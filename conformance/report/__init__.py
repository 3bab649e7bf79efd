"""Reports on runs, for people and machines. Pure, except for printing."""
