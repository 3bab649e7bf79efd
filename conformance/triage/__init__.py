"""Bug reproduction: what makes the difference, since when, and one file that shows it."""
