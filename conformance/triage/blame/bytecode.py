"""Compiled modules, lent by one environment to another that has the same files.

A new environment compiles all that it imports, which takes longer than many a trial.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_CACHE = "__pycache__"


def lend_bytecode(lender: Path, borrower: Path) -> None:
    """Link the compiled modules of an environment into another, where the source is the same file.

    Python replaces a compiled module as a whole, and so changes none that is linked.

    Args:
        lender: Folder of the environment that has them.
        borrower: Folder of the other one.
    """
    for folder in lender.glob("lib/python*/site-packages"):
        for place, _, files in os.walk(folder):
            head, name = os.path.split(place)
            if name == _CACHE:
                _lend(Path(head), files, borrower / os.path.relpath(head, lender))


def _lend(here: Path, files: list[str], there: Path) -> None:
    """Link the compiled modules of a folder; what cannot be is compiled when it is imported."""
    for file in files:
        source = f"{file.partition('.')[0]}.py"
        with contextlib.suppress(OSError):
            if (here / source).samefile(there / source):
                (there / _CACHE).mkdir(exist_ok=True)
                (there / _CACHE / file).hardlink_to(here / _CACHE / file)
