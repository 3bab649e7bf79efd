"""Campaigns of fuzzing and their findings: Markdown, summaries, issues."""
