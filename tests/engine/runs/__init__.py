"""Tests of the engine: runs."""
