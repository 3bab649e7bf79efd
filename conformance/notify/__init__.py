"""What a night is told as: one issue per root cause, opened, updated and closed."""
