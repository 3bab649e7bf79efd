"""The history of runs in a database: what changed in each, and when."""
