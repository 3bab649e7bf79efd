"""Suites of pytest, run inside cells: each test is a case."""
