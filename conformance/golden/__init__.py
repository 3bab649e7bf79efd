"""Goldens: reviewed observations, stored next to the cases for spans of releases."""
