"""Tests of reports: upgrade."""
