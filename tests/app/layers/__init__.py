"""Tests of the application layer: layers."""
