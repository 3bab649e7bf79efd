"""Python as text: comments, imports and definitions as a formatter leaves them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from conformance.corpus.rewriting import render_string_literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

WIDTH: Final = 100
INDENTED: Final = 8
"""The most that statements of ours are indented."""


def comment(text: str, prefix: str = "# ") -> list[str]:
    """Return text as comment lines; nothing in it can end the comment."""
    shown = "".join(one if one.isprintable() or one == "\n" else " " for one in text)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    return [
        f"{prefix}{piece}"
        for line in lines
        for piece in textwrap.wrap(
            line, WIDTH - len(prefix), break_long_words=False, break_on_hyphens=False
        )
    ]


def assigned(target: str, flags: Iterable[str]) -> Iterator[str]:
    """Yield the assignment of words, joined by spaces, broken where it is long.

    Args:
        target: What is assigned to.
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
        yield f"    {format_literal(word + (' ' if number < len(words) - 1 else ''))}"
    yield ")"


def asserted(name: str, value: object) -> list[str]:
    """Return the assertion that a name has a value, broken where it is long.

    Args:
        name: The name.
        value: Any literal.
    """
    line = f"assert {name} == {format_literal(value)}, {name}"
    if len(line) <= WIDTH - INDENTED or not isinstance(value, list | dict):
        return [line]
    if isinstance(value, dict):
        inner = [f"    {format_literal(key)}: {format_literal(one)}," for key, one in value.items()]
        return [f"assert {name} == {{", *inner, f"}}, {name}"]
    return [f"assert {name} == [", *(f"    {format_literal(one)}," for one in value), f"], {name}"]


def imported(lines: Iterable[str]) -> Iterator[str]:
    """Yield imports: those of a module together, plain ones first; long ones broken."""
    taken = sorted(lines)
    of: dict[str, set[str]] = {}
    yield from (line for line in taken if line.startswith("import "))
    for line in taken:
        if line.startswith("from "):
            module, _, told = line.removeprefix("from ").partition(" import ")
            of.setdefault(module, set()).update(told.split(", "))
    for module, found in sorted(of.items()):
        names = sorted(found)
        line = f"from {module} import {', '.join(names)}"
        if len(line) <= WIDTH:
            yield line
        else:
            yield f"from {module} import ("
            yield from (f"    {name}," for name in names)
            yield ")"


def spaced(blocks: Sequence[str]) -> str:
    """Return blocks with the empty lines between them that a formatter leaves."""
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
