"""Tests of the application layer: fuzzing."""
