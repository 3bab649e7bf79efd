"""Tests of the layer behind a difference."""
