"""Tests of suites of pytest that are run inside cells."""
