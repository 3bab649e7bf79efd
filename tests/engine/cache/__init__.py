"""Tests of the engine: cache."""
