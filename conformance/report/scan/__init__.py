"""Scans of code as text, JSON and SARIF."""
