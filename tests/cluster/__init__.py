"""Tests of runs on a cluster."""
