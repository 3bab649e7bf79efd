"""Tests of the engine: workers."""
