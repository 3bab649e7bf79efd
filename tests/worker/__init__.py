"""Tests of what runs inside a cell."""
