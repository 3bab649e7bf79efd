"""One name more, or less, of those that a case file imports from the kit. Pure."""

from __future__ import annotations

import ast
import io
import tokenize
from typing import Final

from conformance.review.literals import INDENT
from conformance.triage.new.edits import Edits

KIT: Final = "conformance.kit"


def importing(text: str, name: str, width: int) -> str:
    """Return a file that imports a name from the kit.

    Args:
        text: The file.
        name: The name.
        width: Columns that the formatter admits.
    """
    found = _imports(text)
    if any(alias.name == name and alias.asname is None for one in found for alias in one.names):
        return text
    edits = Edits(text)
    plain = next((one for one in found if not _has_comment(edits.text_of(one))), None)
    if plain is not None:
        _rewrite(edits, plain, [*plain.names, ast.alias(name)], text, width)
        return edits.applied()
    newline = "\r\n" if "\r\n" in text else "\n"
    line = f"from {KIT} import {name}"
    if found:
        edits.replace(edits.end(found[-1]), edits.end(found[-1]), f"{newline}{line}")
    else:
        first = _first_statement(ast.parse(text))
        edits.replace(edits.start(first), edits.start(first), f"{line}{newline}")
    return edits.applied()


def not_importing(text: str, name: str, width: int) -> str:
    """Return a file that does not import a name from the kit, unless it is used.

    Args:
        text: The file.
        name: The name.
        width: Columns that the formatter admits.
    """
    tree = ast.parse(text)
    used = any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))
    edits = Edits(text)
    for one in _imports(text):
        left = [alias for alias in one.names if alias.name != name or alias.asname]
        if used or len(left) == len(one.names) or _has_comment(edits.text_of(one)):
            continue
        if left:
            _rewrite(edits, one, left, text, width)
        else:
            edits.drop(one)
    return edits.applied()


def _imports(text: str) -> list[ast.ImportFrom]:
    body = ast.parse(text).body
    return [one for one in body if isinstance(one, ast.ImportFrom) and one.module == KIT]


def _rewrite(
    edits: Edits, node: ast.ImportFrom, aliases: list[ast.alias], text: str, width: int
) -> None:
    """Write an import anew: the names in the order of the formatter, on a line if they fit."""
    names = [
        f"{alias.name} as {alias.asname}" if alias.asname else alias.name
        for alias in sorted(aliases, key=_order)
    ]
    line = f"from {KIT} import {', '.join(names)}"
    kept = node.end_lineno == node.lineno
    newline = "\r\n" if "\r\n" in text else "\n"
    if len(line) > width or not kept:
        inner = (f"{INDENT}{name}," for name in names)
        line = newline.join([f"from {KIT} import (", *inner, ")"])
    edits.replace(edits.start(node), edits.end(node), line)


def _order(alias: ast.alias) -> tuple[int, str]:
    """Return where a name stands among others: constants, classes, then the rest."""
    name = alias.name
    rank = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return rank, name


def _has_comment(text: str) -> bool:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return any(token.type == tokenize.COMMENT for token in tokens)


def _first_statement(tree: ast.Module) -> ast.stmt:
    """Return the statement that imports may come before: behind docstring and `__future__`."""
    return next(
        node
        for node in tree.body
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        and not (isinstance(node, ast.ImportFrom) and node.module == "__future__")
    )
