"""Python as text, formatted as Ruff does: comments, imports, literals, definitions. Pure."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from conformance.corpus.python_source import render_string_literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WIDTH: Final = 100
MAX_INDENT: Final = 8
"""Greatest indentation of an assertion in a reproduction."""


def render_comment(text: str) -> list[str]:
    """Return text as comment lines; no character in it can end the comment.

    Args:
        text: Any text.
    """
    # `splitlines`, and some editors, also take form feeds and other characters for line ends.
    shown = "".join(char if char.isprintable() or char == "\n" else " " for char in text)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    return [
        f"# {piece}"
        for line in lines
        # Long words stay whole: URLs and paths are copied from comments.
        for piece in textwrap.wrap(line, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    ]


def render_words(target: str, flags: Iterable[str]) -> Iterator[str]:
    """Yield the assignment of a string of words, on several lines if it is long.

    Args:
        target: The target of the assignment.
        flags: The words.
    """
    joined = " ".join(flags)
    line = f"{target} = {format_literal(joined)}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{target} = ("
    words = joined.split(" ")
    for number, word in enumerate(words):
        # The space belongs to the word before it: Python joins adjacent literals.
        yield f"    {format_literal(word + (' ' if number < len(words) - 1 else ''))}"
    yield ")"


def render_assertion(name: str, value: object) -> list[str]:
    """Return the assertion that a name has a value, on several lines if it is long.

    Args:
        name: The name.
        value: Any literal.
    """
    line = f"assert {name} == {format_literal(value)}, {name}"
    if len(line) <= WIDTH - MAX_INDENT or not isinstance(value, list | dict):
        return [line]
    if isinstance(value, dict):
        inner = [f"    {format_literal(k)}: {format_literal(v)}," for k, v in value.items()]
        return [f"assert {name} == {{", *inner, f"}}, {name}"]
    return [
        f"assert {name} == [",
        *(f"    {format_literal(item)}," for item in value),
        f"], {name}",
    ]


def render_imports(lines: Iterable[str]) -> Iterator[str]:
    """Yield sorted imports: plain ones first, then one statement for each module."""
    ordered = sorted(lines)
    names_of: dict[str, set[str]] = {}
    yield from (line for line in ordered if line.startswith("import "))
    for line in ordered:
        if line.startswith("from "):
            module, _, names = line.removeprefix("from ").partition(" import ")
            names_of.setdefault(module, set()).update(names.split(", "))
    for module, found in sorted(names_of.items()):
        listed = sorted(found)
        line = f"from {module} import {', '.join(listed)}"
        if len(line) <= WIDTH:
            yield line
        else:
            yield f"from {module} import ("
            yield from (f"    {name}," for name in listed)
            yield ")"


def join_blocks(blocks: Sequence[str]) -> str:
    """Return blocks with two empty lines around definitions."""
    parts: list[str] = []
    before = ""
    for block in blocks:
        gap = "\n\n\n" if _is_definition(block) or _is_definition(before) else "\n"
        parts.append((gap if parts else ("\n" if _is_definition(block) else "")) + block)
        before = block
    return "".join(parts)


def _is_definition(block: str) -> bool:
    return block.startswith(("def ", "class ", "@", "async def ")) or "\ndef " in block


def format_literal(value: object) -> str:
    """Return a Python literal as Ruff formats it.

    Args:
        value: A value of built-in types; its strings may also be nested in lists, tuples and dicts.
    """
    match value:
        case str():
            return render_string_literal(value)
        case dict():
            pairs = (f"{format_literal(k)}: {format_literal(v)}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
        case list():
            return f"[{', '.join(map(format_literal, value))}]"
        case tuple():
            return f"({', '.join(map(format_literal, value))}{',' if len(value) == 1 else ''})"
        case _:
            return repr(value)
