"""The process that runs jobs inside a cell: fork server, supervisor, stages and capture.

This package imports nothing of the project but `conformance.kit`, needs the standard library,
NumPy and jax alone, and runs on Python >= 3.10 and jax >= 0.4.30. `main.py` is its entry.
"""
