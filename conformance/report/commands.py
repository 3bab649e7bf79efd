"""Commands a reader may want to run, ready to be pasted into a shell."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conformance.model.run import RunCase


def rerun(case: str, about: RunCase, *cells: str) -> str:
    """Return what runs a case again, or a test of a suite.

    Args:
        case: Case id.
        about: What is known of it.
        cells: Selectors of the cells to run it in.
    """
    named = [f"--cell {quote(cell)}" for cell in dict.fromkeys(cells)]
    target = about.arguments or quote(case)
    if about.kind != "test":
        return " ".join(["conformance run", target, *named])
    # What comes last may be arguments of pytest's own.
    return " ".join(["conformance suite run", *named, target])
