"""Tests of `conformance.suites.known`."""
