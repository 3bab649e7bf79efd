"""Modules of the standard library."""

from __future__ import annotations

import sys

from conformance.corpus.python_source import STANDARD_LIBRARY


def test_it_does_not_depend_on_the_python_of_the_harness() -> None:
    """What a later Python no longer has is no package that a cell lacks."""
    assert sys.stdlib_module_names < STANDARD_LIBRARY
    assert {"distutils", "imp", "cgi", "binhex"} <= STANDARD_LIBRARY
    assert not {"jax", "setuptools"} & STANDARD_LIBRARY
