"""A case in its file: rendered, appended to a new or an existing file, and formatted by Ruff."""

from __future__ import annotations

import ast
import subprocess
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from ruff import find_ruff_bin

from conformance.triage.new.imports import add_imports, split_import
from conformance.triage.new.script_source import render_function
from conformance.triage.repro.layout import WIDTH, format_literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conformance.triage.new.draft import Draft

KIT: Final = "conformance.kit"
_FUTURE: Final = "from __future__ import annotations"
_REPORT: Final = ("check", "--output-format", "json", "--exit-zero")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declarations:
    """The decorator of a case, and its docstring.

    Attributes:
        doc: The docstring.
        keywords: Keywords of the decorator, except deviations and releases.
        deviations: Source text of each deviation.
        releases: Specifier of the releases that the case applies to, empty for all.
        why: Why it does not apply to the others, empty if it applies to all.
    """

    doc: str
    keywords: Mapping[str, Any] = field(default_factory=dict)
    deviations: tuple[str, ...] = ()
    releases: str = ""
    why: str = ""


def render_case(draft: Draft, name: str, declarations: Declarations) -> str:
    """Return the function of a case.

    Args:
        draft: Its body.
        name: Its name.
        declarations: Its decorator and docstring.
    """
    # Parsed, not searched as text: `env` may also be a word of a string or a comment.
    nodes = ast.walk(ast.parse(draft.body))
    uses_env = any(isinstance(node, ast.Name) and node.id == "env" for node in nodes)
    unused = "" if uses_env else "  # noqa: ARG001 - every case takes env"
    releases = {"releases": f"jax{declarations.releases}"} if declarations.releases else {}
    keywords = {**declarations.keywords, **releases, **draft.tolerances}
    arguments = [f"{key}={format_literal(value)}" for key, value in keywords.items()]
    if declarations.deviations:
        listed = "".join(f"        {text},\n" for text in declarations.deviations)
        arguments.append(f"deviations=[\n{listed}    ]")
    marker = f"@{draft.options.kind}("
    joined = ", ".join(arguments)
    # `>=`, for the closing parenthesis needs a column, too.
    if "\n" in joined or len(marker + joined) >= WIDTH:
        joined = "".join(f"\n    {argument}," for argument in arguments) + "\n"
    head = f"{marker}{joined})\ndef {name}(env):{unused}\n{_render_docstring(declarations.doc)}\n"
    imports = [_mark_late_import(line) for line in draft.inner]
    return render_function(head, "\n".join(filter(None, [*imports, draft.body])))


def _mark_late_import(line: str) -> str:
    """Return an import for a function, with a mark that makes the linter accept it."""
    code = "PLC0415 - part of what is observed"
    return f"{line}, {code}" if "noqa" in line else f"{line}  # noqa: {code}"


def _render_docstring(text: str) -> str:
    """Return an indented docstring whose first line is a sentence."""
    # The text is quoted from a script: its quotes and backslashes must not end the docstring, or be
    # read as escapes.
    first, _, rest = text.strip().replace("\\", "\\\\").replace('"""', "'''").partition("\n")
    # The linter requires an end mark (D415).
    first = first if first.endswith((".", "?", "!")) else f"{first}."
    lines = textwrap.wrap(first, WIDTH - 10)
    opening = f'    """{lines[0]}'
    more = "\n".join([*lines[1:], textwrap.dedent(rest).strip("\n")]).strip("\n")
    if not more:
        return f'{opening}"""'
    gap = "\n" if len(lines) > 1 else "\n\n"
    return f'{opening}{gap}{textwrap.indent(more, "    ")}\n    """'


def create_file(text: str, draft: Draft, doc: str) -> str:
    """Return a file with one case.

    Args:
        text: Function of the case.
        draft: Its draft.
        doc: Docstring of the file.
    """
    return append_case(f'"""{doc}"""\n\n{_FUTURE}\n', text, draft)


def append_case(file: str, text: str, draft: Draft) -> str:
    """Return a file with one more case; its other statements stay unchanged.

    Args:
        file: Content of the file.
        text: Function of the case.
        draft: Its draft.
    """
    kind = draft.options.kind
    names = [kind, "Program" if kind == "program" else "Observed"]
    # An import that the case does not need would be a finding of the linter.
    names += ["deviation"] if "deviations=[" in text else []
    kit = (f"from {KIT} import {name}" for name in names)
    return f"{add_imports(file, (*draft.outer.values(), *kit)).rstrip()}\n\n\n{text}"


def find_clashes(file: str, draft: Draft) -> set[str]:
    """Return the names that a draft imports and that a file binds to something else.

    Args:
        file: Content of the file.
        draft: A draft for it.
    """
    lines: dict[str, str] = {}
    for node in ast.parse(file).body:
        lines |= {name: line for line, name in split_import(node)}
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                lines[name] = ""
            case ast.Assign(targets=targets):
                lines |= {target.id: "" for target in targets if isinstance(target, ast.Name)}
            case _:
                pass
    return {name for name, line in draft.outer.items() if lines.get(name, line) != line}


def format_file(text: str, file: Path) -> str:
    """Return a file formatted by Ruff with the project's own configuration.

    Findings of the linter that it cannot fix are marked with `noqa`: they come from the script.

    Args:
        text: Content of the file.
        file: Path of the file: Ruff looks for its configuration from there.
    """
    # Fixes come first: they disturb the layout, which the formatter then restores.
    for command in (("check", "--fix-only", "--exit-zero"), ("format",)):
        text = _run_ruff(command, text, file) or text
    text = _mark_findings(text, _run_ruff(_REPORT, text, file))
    return _run_ruff(("format",), text, file) or text


def _run_ruff(command: tuple[str, ...], text: str, file: Path) -> str:
    """Return the output of a command of Ruff on a text, empty if it fails."""
    # The folder of a new family does not exist until the case is written.
    folder = next(parent for parent in file.parents if parent.is_dir())
    done = subprocess.run(
        [find_ruff_bin(), *command, "--quiet", "--stdin-filename", str(file), "-"],
        input=text, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    # Callers then keep the unformatted text: a case without layout is better than none.
    return done.stdout if done.returncode == 0 else ""


def _mark_findings(text: str, report: str) -> str:
    """Return a text with `noqa` where a report of the linter, as JSON, has a finding."""
    try:
        findings = msgspec.json.decode(report, type=list[dict[str, Any]])
    # Ruff failed and printed no report, e.g. for an invalid configuration of the project.
    except msgspec.DecodeError:
        return text
    codes: dict[int, set[str]] = {}
    for finding in findings:
        if finding.get("code"):
            # Within a string of several lines the mark belongs to its last line: `noqa_row`.
            row = finding.get("noqa_row") or finding["location"]["row"]
            codes.setdefault(row, set()).add(finding["code"])
    lines = text.splitlines()
    for row, found in codes.items():
        before, mark, rest = lines[row - 1].partition("  # noqa: ")
        listed = ", ".join(sorted(found))
        # A line has only one `noqa`: codes of the script's own mark are added to it.
        lines[row - 1] = f"{before}  # noqa: {listed}{', ' if mark else ''}{rest}"
    return "\n".join(lines) + "\n"
