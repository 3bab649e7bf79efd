"""Tests of `conformance.suites.catalogue`."""
