"""Notification about a nightly run: one issue per root cause, opened, updated and closed."""
