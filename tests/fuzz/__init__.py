"""Tests of `conformance.fuzz`."""
