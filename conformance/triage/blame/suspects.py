"""Which packages may well be at fault: those that a target imports, and what they ask for."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Final

from conformance.triage.blame.wants import closure

if TYPE_CHECKING:
    from conformance.triage.blame.mixture import End

OWN: Final = {"conformance", "__future__", *sys.stdlib_module_names}
"""Modules that are of no package."""
ALWAYS: Final = ("jax", "numpy")
"""Packages that every target is about."""


def suspects(source: str, ends: tuple[End, End]) -> set[str]:
    """Return the packages that a text can import, directly or not; empty if that is not known.

    Args:
        source: Python text of a target; empty if it has none.
        ends: Both environments.
    """
    names = _imported(source)
    if names is None:
        return set()
    found = set(ALWAYS)
    for name in names - OWN:
        packages = {one for end in ends for one in end.installed.modules.get(name, ())}
        if not packages:
            return set()  # a module of the user's own, which may import anything
        found |= packages
    return closure(found, *(end.wants for end in ends))


def _imported(source: str) -> set[str] | None:
    """Return the top-level modules that a text imports, None if that is not known."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return None
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                return None
            names.add((node.module or "").partition(".")[0])
    return names or None
