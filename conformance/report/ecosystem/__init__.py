"""Outcomes of libraries on releases of JAX: text, Markdown, JSON, issues."""
