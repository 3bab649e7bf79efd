"""Goldens: reviewed observations, kept beside the cases for spans of releases."""
