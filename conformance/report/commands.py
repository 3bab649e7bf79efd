"""Commands a reader may want to run, ready to be pasted into a shell."""

from __future__ import annotations

import re
from shlex import quote
from typing import Final

NODE: Final = re.compile(r"\.py(::|$)")
"""What stands in the node of a pytest test, or of a module of tests, and in no other case."""


def rerun(case: str, *cells: str) -> str:
    """Return what runs a case again, or a test of a suite.

    Args:
        case: Case id; of a test it is its node.
        cells: Ids of the cells to run it in.
    """
    named = (f"--cell {quote(cell)}" for cell in dict.fromkeys(cells))
    what = "suite run" if NODE.search(case) else "run"
    return " ".join([f"conformance {what}", quote(case), *named])
