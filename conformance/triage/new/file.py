"""A case in its file: a new one, or one more at the end of what is there. Pure."""

from __future__ import annotations

import ast
import re
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.corpus.python_source import STANDARD_LIBRARY
from conformance.triage.new.edits import indented
from conformance.triage.repro.surroundings import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.triage.new.case import Draft

KIT: Final = "conformance.kit"
WIDTH: Final = 100
_FUTURE: Final = "from __future__ import annotations"
_IMPORT: Final = re.compile(r"(?:from (\S+) )?import (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the decorator of a case says, and its docstring.

    Attributes:
        doc: The docstring.
        keywords: Keywords of the decorator, but for deviations.
        deviations: Each deviation, as it is written.
    """

    doc: str
    keywords: Mapping[str, Any] = field(default_factory=dict)
    deviations: tuple[str, ...] = ()


def case_text(draft: Draft, name: str, declared: Declared) -> str:
    """Return the function of a case.

    Args:
        draft: Its inside.
        name: Its name.
        declared: What its decorator says.
    """
    inside = ast.walk(ast.parse(f"def case():\n{indented(draft.body)}\n"))
    env = any(isinstance(node, ast.Name) and node.id == "env" for node in inside)
    unused = "" if env else "  # noqa: ARG001 - every case takes env"
    keywords = {**declared.keywords, **draft.tolerances}
    given = [f"{key}={quoted(value)}" for key, value in keywords.items()]
    if declared.deviations:
        listed = "".join(f"        {one},\n" for one in declared.deviations)
        given.append(f"deviations=[\n{listed}    ]")
    marker = f"@{draft.way.kind}("
    joined = ", ".join(given)
    if "\n" in joined or len(marker + joined) >= WIDTH:
        joined = "".join(f"\n    {one}," for one in given) + "\n"
    imports = [f"{line}{_late(line)}" for line in draft.inner]
    body = "\n".join(filter(None, ["\n".join(imports), draft.body]))
    head = f"{marker}{joined})\ndef {name}(env):{unused}"
    return f"{head}\n{_docstring(declared.doc)}\n{indented(body)}\n"


def _late(line: str) -> str:
    code = "PLC0415 - part of what is observed"
    return f", {code}" if "noqa" in line else f"  # noqa: {code}"


def _docstring(text: str) -> str:
    """Return a docstring, indented; its first line is a sentence."""
    first, _, rest = text.strip().replace("\\", "\\\\").replace('"""', "'''").partition("\n")
    first = first if first.endswith((".", "?", "!")) else f"{first}."
    lines = textwrap.wrap(first, WIDTH - 8)
    quote = f'    """{lines[0]}'
    more = "\n".join([*lines[1:], textwrap.dedent(rest).strip("\n")]).strip("\n")
    if not more:
        return f'{quote}"""'
    gap = "\n" if len(lines) > 1 else "\n\n"
    return f'{quote}{gap}{textwrap.indent(more, "    ")}\n    """'


def new_file(text: str, draft: Draft, doc: str, *, deviates: bool) -> str:
    """Return a file with one case.

    Args:
        text: Function of the case.
        draft: What it was made of.
        doc: Docstring of the file.
        deviates: Whether it declares a deviation.
    """
    head = f'"""{doc}"""\n\n{_FUTURE}\n'
    return _with_imports(head, draft, deviates=deviates).rstrip() + f"\n\n\n{text}"


def appended(file: str, text: str, draft: Draft, *, deviates: bool) -> str:
    """Return a file with one case more; what stands in it stays as it is.

    Args:
        file: The file as it is.
        text: Function of the case.
        draft: What it was made of.
        deviates: Whether it declares a deviation.
    """
    return _with_imports(file, draft, deviates=deviates).rstrip() + f"\n\n\n{text}"


def clashes(file: str, draft: Draft) -> set[str]:
    """Return the names that a file binds at its top to something else than a draft means by them.

    Args:
        file: The file as it is.
        draft: What is to stand in it.
    """
    lines = {name: line for node in ast.parse(file).body for line, name in _bindings(node)}
    return {name for name, line in draft.outer.items() if lines.get(name, line) != line}


def _bindings(node: ast.stmt) -> list[tuple[str, str]]:
    match node:
        case ast.Import(names=aliases):
            return [(f"import {_alias(a)}", a.asname or a.name.partition(".")[0]) for a in aliases]
        case ast.ImportFrom(module=module, names=aliases, level=level):
            lead = f"from {'.' * level}{module or ''} import "
            return [(lead + _alias(alias), alias.asname or alias.name) for alias in aliases]
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [("", name)]
        case ast.Assign(targets=targets):
            return [("", target.id) for target in targets if isinstance(target, ast.Name)]
        case _:
            return []


def _alias(alias: ast.alias) -> str:
    return f"{alias.name} as {alias.asname}" if alias.asname else alias.name


def _with_imports(file: str, draft: Draft, *, deviates: bool) -> str:
    there = {line for node in ast.parse(file).body for line, _ in _bindings(node)}
    names = {*draft.kit, *(["deviation"] if deviates else [])}
    wanted = {*draft.outer.values(), *(f"from {KIT} import {name}" for name in names)}
    for line in sorted(wanted - there):
        file = _imported(file, line)
    return file


def _imported(file: str, line: str) -> str:
    """Return a file with one import more, where a sorter of imports would put it."""
    match = _IMPORT.fullmatch(line)
    assert match is not None  # noqa: S101 - lines are ours
    module, name = match.groups()
    lines = file.splitlines(keepends=True)
    nodes = [n for n in ast.parse(file).body if isinstance(n, ast.Import | ast.ImportFrom)]
    for node in nodes:
        same = isinstance(node, ast.ImportFrom) and node.module == module and not node.level
        if module and same and not any(" as " in one for one in (name, *map(_alias, node.names))):
            assert node.end_lineno is not None  # noqa: S101 - every parsed node has an end
            names = sorted({*map(_alias, node.names), name}, key=_name_key)
            lines[node.lineno - 1 : node.end_lineno] = [_from(module, names)]
            return "".join(lines)
    key, new = _key(line), f"{line}\n"
    keys = [(node, _key(ast.unparse(node))) for node in nodes]
    section = [(node, other) for node, other in keys if other[0] == key[0]]
    lower = [node for node, other in keys if other[0] < key[0]]
    if section:
        after = next((node for node, other in section if other > key), None)
        lines.insert(after.lineno - 1 if after else section[-1][0].end_lineno or 0, new)
    elif lower:
        lines.insert(lower[-1].end_lineno or 0, f"\n{new}")
    else:
        lines.insert(nodes[0].lineno - 1 if nodes else len(lines), f"{new}\n")
    return "".join(lines)


def _from(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return f"{line}\n"
    return f"from {module} import (\n" + "".join(f"    {one},\n" for one in names) + ")\n"


def _name_key(name: str) -> tuple[int, str]:
    """Constants come before classes, and those before functions."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def _key(line: str) -> tuple[int, int, str]:
    """Return where an import stands: its section, plain ones first, by module."""
    match = _IMPORT.fullmatch(line.splitlines()[0])
    module, name = match.groups() if match is not None else (None, line)
    root = (module or name).partition(" ")[0].partition(".")[0]
    section = (
        0 if module == "__future__" else 4 if not root else 1 if root in STANDARD_LIBRARY
        else 3 if root == "conformance" else 2
    )  # fmt: skip
    return section, int(module is not None), f"{module} {name}" if module else name
