"""Tests of reports: suites."""
