"""Tests of `conformance.laws`."""
