"""Time and memory of cases, functions and scripts, compared between cells."""
