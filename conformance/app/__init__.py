"""The application layer: the jobs that people ask for, composed once, for any front end.

A `ProjectContext` looks things up: cases, releases, cells. A `Session` composes what runs them:
locks, workers, caches, the judge. Modules of `cli` declare options and print. Python code that
drives the harness calls the same functions.
"""
