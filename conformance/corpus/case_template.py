"""A template of a topic: a small case of a family, with the parts of its file that it needs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from conformance.corpus.python_source import get_statement_text
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.model.case import Case

FUTURE, OTHER, KIT, RELATIVE = GROUPS = ("future", "other", "kit", "relative")
"""Groups of imports, in order."""
_HEAD: Final = '''\
"""The behaviour that this topic shows, and why it deserves a file.

Generated from {id}, to be edited. Save it as {family}/<topic>.py, then:
conformance run {family}/<case> --matrix releases
"""
'''


def render_template(cases: Sequence[Case], family: str) -> str:
    """Return a case file with the smallest case of a family.

    It can be run without changes in the folder of the family.

    Args:
        cases: All cases.
        family: Name of the family.

    Raises:
        UsageError: If there is no such family.
    """
    members = [case for case in cases if case.family == family and case.kind != "test"]
    if not members:
        known = ", ".join(sorted({case.family for case in cases}))
        raise UsageError(f"--template {family}: no such family; expected one of {known}")
    on_cpu = [case for case in members if not case.platforms or "cpu" in case.platforms]
    texts = {
        case.name: _slice(case.file.read_text(encoding="utf-8"), case.name)
        for case in on_cpu or members
    }
    name, text = min(texts.items(), key=lambda pair: pair[1].count("\n"))
    return f"{_HEAD.format(id=f'{family}/{name}', family=family)}\n{text}"


def _slice(text: str, name: str) -> str:
    """Return the statements of a module that bind a name, directly or indirectly, as written."""
    lines, body = text.splitlines(), ast.parse(text).body
    needed, taken = {name}, set[ast.stmt]()
    while found := [
        node for node in body if node not in taken and needed & set(_find_bound_names(node))
    ]:
        taken.update(found)
        inner = (child for node in found for child in ast.walk(node))
        needed.update(child.id for child in inner if isinstance(child, ast.Name))
    kept = [node for node in body if node in taken or _find_group(node) == FUTURE]
    imports = [node for node in kept if isinstance(node, (ast.Import, ast.ImportFrom))]
    groups = (
        [_render_import(node, needed) for node in imports if _find_group(node) == group]
        for group in GROUPS
    )
    head = "\n\n".join("\n".join(group) for group in groups if group)
    statements = [get_statement_text(node, lines) for node in kept if node not in imports]
    return "\n\n\n".join([head, *statements]) + "\n"


def _find_group(node: ast.stmt) -> str:
    """Return the group of an import, empty for another statement."""
    if isinstance(node, ast.ImportFrom):
        if node.level:
            return RELATIVE
        return {"__future__": FUTURE, "conformance.kit": KIT}.get(node.module or "", OTHER)
    return OTHER if isinstance(node, ast.Import) else ""


def _render_import(node: ast.Import | ast.ImportFrom, needed: set[str]) -> str:
    """Return an import of only the needed names."""
    if _find_group(node) != FUTURE:
        node.names = [alias for alias in node.names if _get_bound_name(alias) in needed]
    return ast.unparse(node)


def _find_bound_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from map(_get_bound_name, node.names)
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    else:
        names = (child for child in ast.walk(node) if isinstance(child, ast.Name))
        yield from (name.id for name in names if isinstance(name.ctx, ast.Store))


def _get_bound_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]
