"""What is asked of each point of a search, and what its answers are."""
