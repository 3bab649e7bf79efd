"""Tests of the application layer: scanning."""
