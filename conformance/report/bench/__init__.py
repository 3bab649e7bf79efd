"""Comparisons of time and memory, as text and as Markdown."""
