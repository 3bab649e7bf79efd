"""Parsing Python that may come from anywhere."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

STANDARD_LIBRARY: Final = sys.stdlib_module_names | {
    # Since 3.11, 3.12 and 3.13 they are gone; a cell may have an older Python than the harness.
    *("binhex", "asynchat", "asyncore", "distutils", "imp", "smtpd"),
    *("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap"),
    *("msilib", "nis", "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau"),
    *("telnetlib", "uu", "xdrlib"),
}  # fmt: skip
"""Names of top-level modules that some Python from 3.10 on has: no package of an index."""


def parse(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a source text.

    Args:
        source: The text; bytes are decoded as Python decodes a file.
        filename: Its file, for the error.

    Raises:
        SyntaxError: If it is no Python, holds a null byte, or is nested too deeply.
    """
    try:
        return ast.parse(source, filename=filename)
    except (RecursionError, MemoryError):  # what the parser raises depends on the release
        raise SyntaxError("nested too deeply to be read") from None
    except ValueError as error:  # a null byte, up to Python 3.11.3
        raise SyntaxError(str(error)) from None


def statement_text(node: ast.stmt, lines: Sequence[str]) -> str:
    """Return a statement as written, with its decorators.

    Args:
        node: The statement.
        lines: The lines of its file.
    """
    decorators = getattr(node, "decorator_list", ())
    first = min([node.lineno, *(one.lineno for one in decorators)])
    return "\n".join(lines[first - 1 : node.end_lineno])


def imported_modules(tree: ast.Module) -> set[str]:
    """Return the top-level modules that a text imports anywhere, without relative imports.

    Args:
        tree: The text, parsed.
    """
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return names


def sort_key_of_import(written: str) -> tuple[int, str]:
    """Return the place of a name in a sorted `from` import: constants, classes, then the rest.

    Args:
        written: The imported name, optionally with `as` and another name.
    """
    name = written.partition(" ")[0]
    rank = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return rank, name
