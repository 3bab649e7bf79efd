"""Suites that have a name: what they are, and where they come from."""
