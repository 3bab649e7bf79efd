"""Which packages may well be at fault: those that a target imports, and what they ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.corpus.python_source import STANDARD_LIBRARY, imported_modules, parse
from conformance.triage.blame.installed import closure

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.model.case import Case
    from conformance.triage.blame.mixtures import End

OWN: Final = {"conformance", "__future__", *STANDARD_LIBRARY}
"""Modules that are of no package."""
ALWAYS: Final = ("jax", "numpy")
"""Packages that every target is about."""


def suspects(sources: Iterable[str], ends: tuple[End, End]) -> set[str]:
    """Return the packages that a target can import, directly or not; empty if that is not known.

    Args:
        sources: Its Python text, and that of every file in its folder that it may import.
        ends: Both environments.
    """
    names: set[str] = set()
    for source in sources:
        try:
            names |= imported_modules(parse(source))
        except SyntaxError:
            return set()
    found = set(ALWAYS) if names else set()
    for name in names - OWN:
        packages = {one for end in ends for one in end.installed.modules.get(name, ())}
        if not packages:
            return set()  # a module of the user's own, which may import anything
        found |= packages
    return closure(found, *(end.wants for end in ends))


def sources_of(case: Case) -> list[str]:
    """Return the text of a case's file, and of the helpers that it may import."""
    files = [case.file, *sorted(case.file.parent.glob("_*.py"))]
    return [file.read_text("utf-8", "replace") for file in files]
