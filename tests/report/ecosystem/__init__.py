"""Tests of reports: ecosystem."""
