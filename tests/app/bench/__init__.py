"""Tests of the application layer: measuring."""
