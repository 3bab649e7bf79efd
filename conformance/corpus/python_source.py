"""Parsing of untrusted Python sources."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

STANDARD_LIBRARY: Final = sys.stdlib_module_names | {
    # Removed in 3.11, 3.12 and 3.13; a cell may have an older Python than the harness.
    *("binhex", "asynchat", "asyncore", "distutils", "imp", "smtpd"),
    *("aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap"),
    *("msilib", "nis", "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau"),
    *("telnetlib", "uu", "xdrlib"),
}  # fmt: skip
"""Top-level modules of the standard library in any Python from 3.10 on."""


def parse(source: str | bytes, filename: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a source text.

    Args:
        source: Source text; bytes are decoded as in a Python file.
        filename: File name for error messages.

    Raises:
        SyntaxError: If the text is not Python, contains a null byte, or is nested too deeply.
    """
    try:
        return ast.parse(source, filename=filename)
    except (RecursionError, MemoryError):  # which one depends on the Python release
        raise SyntaxError("nested too deeply to be read") from None
    except ValueError as error:  # a null byte, up to Python 3.11.3
        raise SyntaxError(str(error)) from None


def get_callee_name(node: ast.expr) -> str:
    """Return the last part of the name that a call or a decorator names, or an empty text.

    Args:
        node: A call such as `kit.program(...)`, or its callee `kit.program`.
    """
    callee = node.func if isinstance(node, ast.Call) else node
    return callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")


def get_statement_text(node: ast.stmt, lines: Sequence[str]) -> str:
    """Return a statement as written, with its decorators.

    Args:
        node: Statement of a parsed file.
        lines: Lines of the file.
    """
    decorators = getattr(node, "decorator_list", ())
    # Since Python 3.8 the line of a function is that of `def`, below its decorators.
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return "\n".join(lines[first - 1 : node.end_lineno])


def find_imported_modules(tree: ast.Module) -> set[str]:
    """Return the top-level modules that a source imports anywhere, without relative imports.

    Args:
        tree: Syntax tree of the source.
    """
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return names


def sort_key_of_import(name: str) -> tuple[int, str]:
    """Return the sort key of a name in a `from` import: constants, classes, then other names.

    Args:
        name: Imported name, optionally with `as` and another name.
    """
    name = name.partition(" ")[0]
    rank = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return rank, name


def render_string_literal(text: str) -> str:
    """Return a text as a string literal, in double quotes unless single quotes save backslashes.

    Characters that are not printable are escaped, so that a text can contain no line break and no
    invisible character.

    Args:
        text: Any text.
    """
    if '"' in text and "'" not in text:
        # Single quotes avoid a backslash before every double quote, as formatters do.
        return repr(text)
    # The double quote in front makes `repr` use single quotes for any text.
    inner = repr(f'"{text}')[2:-1]
    return '"' + inner.replace("\\'", "'").replace('"', '\\"') + '"'
