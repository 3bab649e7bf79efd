"""Pytest suites in cells: run, accepted, and their history."""
