"""Modules of the standard library."""

from __future__ import annotations

import sys

from conformance.corpus.python_source import STANDARD_LIBRARY


def test_the_standard_library_is_that_of_all_pythons() -> None:
    """A module that a later Python removed is not a missing package."""
    assert sys.stdlib_module_names < STANDARD_LIBRARY
    assert {"distutils", "imp", "cgi", "binhex"} <= STANDARD_LIBRARY
    assert not {"jax", "setuptools"} & STANDARD_LIBRARY
