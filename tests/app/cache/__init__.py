"""Tests of the application layer: the cache."""
