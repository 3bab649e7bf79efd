"""Tests of reports: scan."""
