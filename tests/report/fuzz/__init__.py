"""Tests of reports: fuzz."""
