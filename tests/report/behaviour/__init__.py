"""Tests of reports: behaviour."""
