"""Tests of reports: bench."""
