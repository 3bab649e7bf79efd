"""Scans of a code base for the changes of an upgrade, without running it."""
