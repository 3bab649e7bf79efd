"""Instrumentation of a Python process before its program starts: see `sitecustomize`."""
