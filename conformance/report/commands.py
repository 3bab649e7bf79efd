"""Commands a reader may want to run, ready to be pasted into a shell."""

from __future__ import annotations

from shlex import quote


def rerun(case: str, *cells: str) -> str:
    """Return what runs a case again.

    Args:
        case: Case id.
        cells: Ids of the cells to run it in.
    """
    named = (f"--cell {quote(cell)}" for cell in dict.fromkeys(cells))
    return " ".join(["conformance run", quote(case), *named])
