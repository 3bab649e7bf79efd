"""Tests of the application layer: libraries."""
