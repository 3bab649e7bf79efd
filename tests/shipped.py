"""The cases that ship with the project, read once in a process and only by tests that need them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from conformance.corpus.case_selection import select_cases

from .projects import ROOT

if TYPE_CHECKING:
    from conformance.model.case import Case

CASES: Final = ROOT / "cases"
FAMILY_NAMES: Final = sorted({file.parent.name for file in CASES.glob("*/*.py")})


@cache
def load_shipped_cases() -> dict[str, Case]:
    """Return all cases by id."""
    return {case.id: case for case in select_cases((), CASES)}
