"""A topic to start from: one small case of a family, with what of its file it needs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from conformance.corpus.python_source import statement_text
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.model.case import Case

FUTURE, OTHER, KIT, BESIDE = GROUPS = ("future", "other", "kit", "beside")
"""Groups of imports, in their order."""
_HEAD: Final = '''\
"""What this topic shows, and why it is worth a file.

Made from {id}, to be edited. As {family}/<topic>.py beside it:
conformance run {family}/<case> --matrix releases
"""
'''


def render_template(cases: Sequence[Case], family: str) -> str:
    """Return a file with the smallest case of a family.

    Args:
        cases: All cases.
        family: Name of the family.

    Returns:
        A topic that can be put beside the family's own, and runs as it is.

    Raises:
        UsageError: If there is no such family.
    """
    members = [case for case in cases if case.family == family and case.kind != "test"]
    if not members:
        known = ", ".join(sorted({case.family for case in cases}))
        raise UsageError(f"--template {family}: no such family; there are {known}")
    able = [case for case in members if not case.platforms or "cpu" in case.platforms]
    texts = {
        case.name: _slice(case.file.read_text(encoding="utf-8"), case.name)
        for case in able or members
    }
    name, text = min(texts.items(), key=lambda one: one[1].count("\n"))
    return f"{_HEAD.format(id=f'{family}/{name}', family=family)}\n{text}"


def _slice(text: str, name: str) -> str:
    """Return of a module what binds a name, and whatever that uses, as written."""
    lines, body = text.splitlines(), ast.parse(text).body
    needed, taken = {name}, set[ast.stmt]()
    while found := [node for node in body if node not in taken and needed & set(_binds(node))]:
        taken.update(found)
        inner = (one for node in found for one in ast.walk(node))
        needed.update(one.id for one in inner if isinstance(one, ast.Name))
    kept = [node for node in body if node in taken or _group(node) == FUTURE]
    imports = [node for node in kept if isinstance(node, (ast.Import, ast.ImportFrom))]
    groups = (
        [_import(node, needed) for node in imports if _group(node) == group] for group in GROUPS
    )
    head = "\n\n".join("\n".join(group) for group in groups if group)
    statements = [statement_text(node, lines) for node in kept if node not in imports]
    return "\n\n\n".join([head, *statements]) + "\n"


def _group(node: ast.stmt) -> str:
    """Return of which group an import is; empty for other statements."""
    if isinstance(node, ast.ImportFrom):
        if node.level:
            return BESIDE
        return {"__future__": FUTURE, "conformance.kit": KIT}.get(node.module or "", OTHER)
    return OTHER if isinstance(node, ast.Import) else ""


def _import(node: ast.Import | ast.ImportFrom, needed: set[str]) -> str:
    """Return an import of what is needed alone."""
    if _group(node) != FUTURE:
        node.names = [one for one in node.names if _get_bound_name(one) in needed]
    return ast.unparse(node)


def _binds(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from map(_get_bound_name, node.names)
    elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        yield node.name
    else:
        stored = (one for one in ast.walk(node) if isinstance(one, ast.Name))
        yield from (one.id for one in stored if isinstance(one.ctx, ast.Store))


def _get_bound_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]
