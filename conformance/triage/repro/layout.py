"""Python as text: comments, imports and definitions as a formatter leaves them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

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
    line = f"{target} = {quoted(joined)}"
    if len(line) <= WIDTH:
        yield line
        return
    yield f"{target} = ("
    words = joined.split(" ")
    for number, word in enumerate(words):
        yield f"    {quoted(word + (' ' if number < len(words) - 1 else ''))}"
    yield ")"


def asserted(name: str, value: object) -> list[str]:
    """Return the assertion that a name has a value, broken where it is long.

    Args:
        name: The name.
        value: Any literal.
    """
    line = f"assert {name} == {quoted(value)}, {name}"
    if len(line) <= WIDTH - INDENTED or not isinstance(value, list | dict):
        return [line]
    if isinstance(value, dict):
        inner = [f"    {quoted(key)}: {quoted(one)}," for key, one in value.items()]
        return [f"assert {name} == {{", *inner, f"}}, {name}"]
    return [f"assert {name} == [", *(f"    {quoted(one)}," for one in value), f"], {name}"]


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


def quoted(value: object) -> str:
    """Return a literal as `ruff format` spells it: text in double quotes where that is simpler."""
    if isinstance(value, str):
        plain = repr(value)
        if plain.startswith("'") and '"' not in value:
            return f'"{plain[1:-1]}"'
        return plain
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(k)}: {quoted(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(quoted, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(quoted, value))}{',' if len(value) == 1 else ''})"
    return repr(value)
