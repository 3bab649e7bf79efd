"""A template of a topic: a small case of a family, with the parts of its file that it needs."""

from __future__ import annotations

import ast
import copy
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from conformance.corpus.python_source import get_statement_text
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

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
    # A template must run on any machine; cases for other platforms serve only if there are no
    # others.
    on_cpu = [case for case in members if not case.platforms or "cpu" in case.platforms]
    names: dict[Path, list[str]] = defaultdict(list)
    for case in on_cpu or members:
        names[case.file].append(case.name)
    texts = {
        name: text
        for file, wanted in names.items()
        for name, text in _slice(file.read_text(encoding="utf-8"), dict.fromkeys(wanted))
    }
    name, text = min(texts.items(), key=lambda pair: pair[1].count("\n"))
    return f"{_HEAD.format(id=f'{family}/{name}', family=family)}\n{text}"


def _slice(text: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield for each name the statements of a module that bind it, directly or indirectly."""
    lines, body = text.splitlines(), ast.parse(text).body
    binding: dict[str, list[int]] = defaultdict(list)
    for number, node in enumerate(body):
        for bound in _find_bound_names(node):
            binding[bound].append(number)
    # Names are matched without scopes: a local name may keep a statement too many, never one too
    # few.
    used = [{n.id for n in ast.walk(node) if isinstance(n, ast.Name)} for node in body]
    for name in names:
        needed, pending, taken = {name}, [name], set[int]()
        # Transitive closure: a helper may use other helpers and constants.
        while pending:
            for number in set(binding[pending.pop()]) - taken:
                taken.add(number)
                pending += used[number] - needed
                needed |= used[number]
        chosen = [n for n, node in enumerate(body) if n in taken or _find_group(node) == FUTURE]
        yield name, _render_statements([body[n] for n in chosen], lines, needed)


def _render_statements(chosen: Sequence[ast.stmt], lines: list[str], needed: set[str]) -> str:
    """Return statements as written, below imports of the needed names."""
    imports = [node for node in chosen if isinstance(node, (ast.Import, ast.ImportFrom))]
    groups = (
        [_render_import(node, needed) for node in imports if _find_group(node) == group]
        for group in GROUPS
    )
    head = "\n\n".join("\n".join(group) for group in groups if group)
    statements = [get_statement_text(node, lines) for node in chosen if node not in imports]
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
    # A `__future__` import binds no name that the code uses.
    if _find_group(node) == FUTURE:
        return ast.unparse(node)
    # The tree is shared by all templates of the file, so its nodes are not changed.
    few = copy.copy(node)
    few.names = [alias for alias in node.names if _get_bound_name(alias) in needed]
    return ast.unparse(few)


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
