"""Pasted reports as runnable scripts: their code, variables and versions."""

from __future__ import annotations

import ast
import hashlib
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.corpus.python_source import parse
from conformance.engine.runs.directory import RunDirectory
from conformance.errors import UsageError
from conformance.files import write_atomically
from conformance.triage.programs.program import ProgramKind, ProgramTarget
from conformance.triage.programs.report_facts import (
    find_pins,
    find_release,
    find_variables,
    read_assignments,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FENCE: Final = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+.-]*)[^\n]*\n(.*?)^[ \t]*\1", re.MULTILINE | re.DOTALL
)
_PYTHON: Final = frozenset({"python", "py", "python3", "ipython", "pycon"})
_OTHER: Final = frozenset({"bash", "sh", "shell", "console", "text", "pytb", "traceback", "output"})
_PROMPT: Final = re.compile(r"^[ \t]*(?:>>>|In \[\d+\]:)(?: |$)", re.MULTILINE)
_ANY_PROMPT: Final = re.compile(r"[ \t]*(?:>>>|\.\.\.:?|In \[\d+\]:)(?: |$)")
_SHELL: Final = re.compile(r"[ \t]*(?:\$[ \t]+(?:export[ \t]+)?|export[ \t]+)(.*)")
_MAGIC: Final = re.compile(r"[ \t]*(?:[!%][\w%!].*)")
_THREAD: Final = re.compile(r"https?://github\.com/([\w.-]+/[\w.-]+)/(?:issues|pull)/(\d+)")
_SHORT: Final = re.compile(r"[\w.-]+/[\w.-]+#\d+")
_TEXTS: Final = frozenset({".md", ".markdown", ".rst", ".txt"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PastedScript:
    """A pasted script as plain Python.

    Attributes:
        text: Source of the script.
        echoes: Whether values of expressions are printed: the script had prompts, or is a block
            that prints nothing else.
        variables: Environment variables that the report sets.
        thread: Upstream thread that the report names, `owner/repo#N`; empty for none.
        notes: Omissions, a sentence each.
    """

    text: str
    echoes: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    thread: str = ""
    notes: tuple[str, ...] = ()


def read_paste(text: str, name: str) -> PastedScript:
    """Return the script of a pasted text.

    Args:
        text: Python, or text with a fenced block of it, with or without prompts.
        name: Name of the text in messages.

    Raises:
        UsageError: If the text holds no Python.
    """
    notes: list[str] = []
    chosen = _find_block(text, notes)
    variables: dict[str, str] = {}
    if not is_python(chosen):
        chosen = _strip_shell_lines(chosen, variables, notes)
    echoes = bool(_PROMPT.search(chosen))
    if echoes:
        chosen = _strip_prompts(chosen)
        if not is_python(chosen):
            chosen = _strip_shell_lines(chosen, variables, notes)
    chosen = textwrap.dedent(chosen.expandtabs(4) if "\t" in chosen else chosen).strip("\n") + "\n"
    _check(chosen, name)
    # Lines within the code itself come last: they are nearest to it.
    variables = find_variables(text, chosen, notes) | variables
    return PastedScript(
        text=_separate_statements(chosen),
        echoes=echoes or (chosen.strip() != text.strip() and _has_final_value(chosen)),
        variables=variables,
        thread=find_thread(text),
        notes=tuple(notes),
    )


def find_thread(text: str) -> str:
    """Return the upstream thread that a text names, `owner/repo#N`; empty for none.

    Args:
        text: Text with a link, or `owner/repo#N` alone.
    """
    link = _THREAD.search(text)
    if link:
        return f"{link[1]}#{link[2]}"
    return text.strip() if "\n" not in text.strip() and _SHORT.fullmatch(text.strip()) else ""


def add_echoes(script: str) -> str:
    """Return a script that prints the values that an interactive interpreter would show.

    Args:
        script: Plain Python, no two statements of which share a line.
    """
    lines = script.encode().splitlines(keepends=True)
    # From the end, so that line numbers before an edit stay valid.
    for node in reversed(ast.parse(script).body):
        if not isinstance(node, ast.Expr) or _is_print(node.value):
            continue
        # The value of a call may be None, which an interpreter does not show.
        call = isinstance(node.value, ast.Call)
        before, after = ("__import__('sys').displayhook(", ")") if call else ("print(repr((", ")))")
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        end = node.end_col_offset
        lines[last] = lines[last][:end] + after.encode() + lines[last][end:]
        lines[first] = before.encode() + lines[first]
    return b"".join(lines).decode()


def _is_print(value: ast.expr) -> bool:
    """Say whether an expression is a call of `print`."""
    name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
    return name == "print"


def _find_block(text: str, notes: list[str]) -> str:
    """Return the first fenced block of Python; the whole text if there is none."""
    # Plain Python is taken whole: its docstrings may contain fences.
    if is_python(text):
        return text
    found = [(kind.lower(), block) for _, kind, block in _FENCE.findall(text)]
    named = [block for kind, block in found if kind in _PYTHON]
    plain = [block for kind, block in found if kind not in _OTHER and _is_code(block)]
    # A block that is marked as Python is meant as code, also if it does not parse.
    blocks = named or plain
    if len(blocks) > 1:
        more = len(blocks) - 1
        notes.append(f"{more} more block{'s' if more > 1 else ''} of code left out")
    return blocks[0] if blocks else text


def _is_code(block: str) -> bool:
    return bool(_PROMPT.search(block)) or is_python(
        _strip_shell_lines(textwrap.dedent(block), {}, [])
    )


def is_python(text: str) -> bool:
    """Say whether a text is valid Python."""
    try:
        parse(text)
    except SyntaxError:
        return False
    return True


def _strip_prompts(text: str) -> str:
    """Return the text after prompts; the other lines are output."""
    lines = (line for line in text.splitlines() if _ANY_PROMPT.match(line))
    return "\n".join(_ANY_PROMPT.sub("", line, count=1) for line in lines)


def _strip_shell_lines(text: str, variables: dict[str, str], notes: list[str]) -> str:
    """Return a text without shell and notebook lines; collect the variables that they set."""
    remaining = []
    for line in text.splitlines():
        if shell := _SHELL.fullmatch(line):
            variables |= read_assignments(shell[1])
        elif _MAGIC.fullmatch(line):
            notes.append(f"`{line.strip()}` left out")
        else:
            remaining.append(line)
    return "\n".join(remaining)


def _check(text: str, name: str) -> None:
    try:
        tree = parse(text)
    except SyntaxError as error:
        line = getattr(error, "lineno", None)
        reason = str(getattr(error, "msg", error))
        where = f"{name}:{line}" if line else name
        raise UsageError(
            f"{where}: no Python: {reason[:1].lower()}{reason[1:]}; expected a script, or text "
            "with a fenced block of one"
        ) from None
    if not tree.body:
        raise UsageError(f"{name}: holds no statement, expected a Python script")


def _has_final_value(script: str) -> bool:
    """Say whether a script prints nothing and ends in an expression, as in a notebook."""
    tree = ast.parse(script)
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return isinstance(tree.body[-1], ast.Expr) and not any(map(_is_print, calls))


def _separate_statements(text: str) -> str:
    """Return a script with at most one statement per line."""
    body = ast.parse(text).body
    lines = [line for node in body for line in {node.lineno, node.end_lineno}]
    return text if len(lines) == len(set(lines)) else ast.unparse(ast.parse(text)) + "\n"


def is_report(file: Path) -> bool:
    """Say whether a file is a text with a script in it, and not a script itself."""
    if not file.is_file() or file.suffix not in {".py", *_TEXTS}:
        return False
    if file.suffix in _TEXTS:
        return True
    return not is_python(file.read_text("utf-8", "replace"))


def extract_script(text: str, name: str, folder: Path, say: Callable[[str], None]) -> ProgramTarget:
    """Write the script of a report, and return it with the variables and versions of the report.

    Args:
        text: The report.
        name: Name of the text in messages.
        folder: Folder in which a new folder with the script is created.
        say: Callback that receives a summary of the report.

    Raises:
        UsageError: If it holds no Python.
        InfrastructureError: If the disk refuses.
    """
    pasted = read_paste(text, name)
    script = add_echoes(pasted.text) if pasted.echoes else pasted.text
    # Named after its content: a changed report is another target with another log.
    digest = hashlib.sha256(script.encode()).hexdigest()[:8]
    stem = Path(name).stem
    file = folder / f"{stem}-{digest}" / f"{stem}.py"
    RunDirectory(file.parent).create()
    write_atomically(file, script.encode())
    preferred = find_pins(text, pasted.text)
    variables = [f"{name}={value}" for name, value in pasted.variables.items()]
    parts = [f"{name}: its script is {file}", *pasted.notes]
    seen_on = find_release(text)
    parts += [f"seen on jax {seen_on}"] if seen_on else []
    parts += [f"with {' '.join((*variables, *preferred))}"] if variables or preferred else []
    say("; ".join(parts))
    return ProgramTarget(
        kind=ProgramKind.SCRIPT,
        text=str(file),
        variables=pasted.variables,
        preferred=preferred,
        seen_on=seen_on,
    )
