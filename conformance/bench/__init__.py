"""Time and memory of cases in two releases: statistics of paired measurements. Pure."""
