"""The file of a shrunk case: formatted, with the value, error or fact that it should give."""

from __future__ import annotations

import ast
import subprocess
from typing import TYPE_CHECKING, Any, Final

from ruff import find_ruff_bin

from conformance.model.observation import ExpectedError
from conformance.model.value import CorruptValueError
from conformance.triage.new.reference import render_value
from conformance.triage.repro.layout import WIDTH, comment
from conformance.triage.shrink.cleanup import tidy
from conformance.triage.shrink.source import function_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.model.value import Value

IMPORTS: Final = "import numpy as np\nfrom conformance.kit import Observed, raises"
"""The names that a reference may need."""
FORMATTERS: Final = (
    ("check", "--select=I", "--fix", "--config=lint.isort.known-first-party=['conformance']"),
    ("format", f"--line-length={WIDTH}"),
)
"""Sort the imports, then lay the code out."""


def lines_of_code(text: str) -> int:
    """Return how many lines of a text are neither empty nor a comment.

    Args:
        text: Python.
    """
    lines = (line.strip() for line in text.splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def formatted(text: str, head: Iterable[str] = ()) -> str:
    """Return a text as Ruff formats it.

    Args:
        text: Python without comments.
        head: Comments on top of it.
    """
    # Ruff would leave the empty line that `ast.unparse` puts before a function within another.
    text = ast.unparse(ast.parse(text)).replace(":\n\n", ":\n")
    for options in FORMATTERS:
        text = subprocess.run(
            [find_ruff_bin(), *options, "--isolated", "--quiet", "-"],
            input=text, capture_output=True, text=True, encoding="utf-8", check=True,
        ).stdout  # fmt: skip
    comments = "".join(f"{line}\n" for one in head for line in comment(one))
    return f"{comments}\n{text}" if comments else text


def with_reference(text: str, name: str, expected: Value | ExpectedError) -> str | None:
    """Return a case with what it should give; None where that cannot be written.

    Args:
        text: A case file.
        name: Name of its function.
        expected: What it should give.
    """
    tree = ast.parse(text)
    match function_of(tree, name):
        case ast.FunctionDef(
            body=[*_, ast.Return(value=ast.Call(func=ast.Name(id="Program" | "Observed")) as call)]
        ):
            pass
        case ast.FunctionDef(
            body=[*_, ast.Return(value=ast.expr() as value) as last],
            decorator_list=[ast.Call(func=ast.Name(id="probe")), *_],
        ):
            observed = ast.Name(id="Observed", ctx=ast.Load())
            last.value = call = ast.Call(func=observed, args=[value], keywords=[])
        case _:
            return None
    if isinstance(expected, ExpectedError):
        names = [expected.type, *([expected.match] if expected.match else [])]
        reference = f"raises({', '.join(map(repr, names))})"
    else:
        try:
            reference = render_value(expected)
        except CorruptValueError:
            reference = ""
    if not reference:
        return None
    _set_keyword(call, "reference", reference)
    tree.body[:0] = ast.parse(IMPORTS).body
    return ast.unparse(tidy(tree, name))


def with_claim(text: str, name: str, fact: str, facts: Mapping[str, Any]) -> str:
    """Return a case that claims a fact.

    Args:
        text: A case file.
        name: Name of its function.
        fact: The fact, or a part of it.
        facts: What is to be claimed of it.
    """
    tree = ast.parse(text)
    match function_of(tree, name).decorator_list:
        case [ast.Call() as marked, *_]:
            first = fact.partition(".")[0]
            _set_keyword(marked, "facts", repr({first: facts[first]}))
        case _:
            pass
    return ast.unparse(tree)


def _set_keyword(call: ast.Call, name: str, value: str) -> None:
    kept = [one for one in call.keywords if one.arg != name]
    call.keywords = [*kept, ast.keyword(arg=name, value=ast.parse(value, mode="eval").body)]
