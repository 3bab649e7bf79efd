"""Tests of `conformance.suites.running`."""
