"""A case in its file: a new one, or one more at the end of what is there. Pure."""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.triage.new.imports import WIDTH, add_imports, import_lines
from conformance.triage.new.source import render_function
from conformance.triage.repro.layout import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.triage.new.draft import Draft

KIT: Final = "conformance.kit"
_FUTURE: Final = "from __future__ import annotations"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the decorator of a case says, and its docstring.

    Attributes:
        doc: The docstring.
        keywords: Keywords of the decorator, except deviations.
        deviations: Each deviation, as it is written.
    """

    doc: str
    keywords: Mapping[str, Any] = field(default_factory=dict)
    deviations: tuple[str, ...] = ()


def render_case(draft: Draft, name: str, declared: Declared) -> str:
    """Return the function of a case.

    Args:
        draft: Its inside.
        name: Its name.
        declared: What its decorator says.
    """
    inside = ast.walk(ast.parse(draft.body))
    env = any(isinstance(node, ast.Name) and node.id == "env" for node in inside)
    unused = "" if env else "  # noqa: ARG001 - every case takes env"
    keywords = {**declared.keywords, **draft.tolerances}
    given = [f"{key}={quoted(value)}" for key, value in keywords.items()]
    if declared.deviations:
        listed = "".join(f"        {one},\n" for one in declared.deviations)
        given.append(f"deviations=[\n{listed}    ]")
    marker = f"@{draft.options.kind}("
    joined = ", ".join(given)
    if "\n" in joined or len(marker + joined) >= WIDTH:
        joined = "".join(f"\n    {one}," for one in given) + "\n"
    head = f"{marker}{joined})\ndef {name}(env):{unused}\n{_docstring(declared.doc)}\n"
    return render_function(head, "\n".join(filter(None, [*map(_late, draft.inner), draft.body])))


def _late(line: str) -> str:
    """Return an import within a function, its mark for the linter included."""
    code = "PLC0415 - part of what is observed"
    return f"{line}, {code}" if "noqa" in line else f"{line}  # noqa: {code}"


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


def create_file(text: str, draft: Draft, doc: str, *, deviates: bool) -> str:
    """Return a file with one case.

    Args:
        text: Function of the case.
        draft: What it was made of.
        doc: Docstring of the file.
        deviates: Whether it declares a deviation.
    """
    return append_case(f'"""{doc}"""\n\n{_FUTURE}\n', text, draft, deviates=deviates)


def append_case(file: str, text: str, draft: Draft, *, deviates: bool) -> str:
    """Return a file with one case more; what stands in it stays as it is.

    Args:
        file: The file as it is.
        text: Function of the case.
        draft: What it was made of.
        deviates: Whether it declares a deviation.
    """
    names = (*draft.kit, *(("deviation",) if deviates else ()))
    lines = (*draft.outer.values(), *(f"from {KIT} import {name}" for name in names))
    return f"{add_imports(file, lines).rstrip()}\n\n\n{text}"


def find_clashes(file: str, draft: Draft) -> set[str]:
    """Return the names that a file binds at its top to something else than a draft means by them.

    Args:
        file: The file as it is.
        draft: What is to stand in it.
    """
    lines: dict[str, str] = {}
    for node in ast.parse(file).body:
        lines |= {name: line for line, name in import_lines(node)}
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                lines[name] = ""
            case ast.Assign(targets=targets):
                lines |= {one.id: "" for one in targets if isinstance(one, ast.Name)}
            case _:
                pass
    return {name for name, line in draft.outer.items() if lines.get(name, line) != line}
