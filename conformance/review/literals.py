"""A declared deviation as the text of a call, as the formatter leaves it. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.corpus.metadata import DeviationMetadata

INDENT: Final = "    "
WIDTH: Final = 88
"""Columns that formatters admit where nothing else is said."""
_ORDER: Final = ("params", "outcome", "error", "match", "platform", "packages", "reason", "issue")
_DEFAULT_OUTCOME: Final = "raised"
_LEAST: Final = 20
"""Columns of a piece of a long text, however deep it stands."""


def call_lines(name: str, deviation: DeviationMetadata, width: int) -> list[str]:
    """Return the lines of a call, that of the closing bracket without a comma.

    Args:
        name: What is called.
        deviation: What it says; what is left out by default is left out.
        width: Columns that the formatter admits; a text is in pieces only where it must be, for
            the formatter joins those that fit.
    """
    lines = [f"{name}("]
    if deviation.releases:
        lines.append(f"{INDENT}{literal(deviation.releases)},")
    for field in _ORDER:
        value = getattr(deviation, field)
        if value and not (field == "outcome" and value == _DEFAULT_OUTCOME):
            lines += _keyword(field, value, width)
    return [*lines, ")"]


def _keyword(name: str, value: Any, width: int) -> Iterator[str]:
    if isinstance(value, dict):
        yield f"{INDENT}{name}={_mapping(value)},"
        return
    if isinstance(value, tuple):
        yield from _names(name, value, width)
        return
    whole = f"{INDENT}{name}={literal(value)},"
    pieces = _pieces(value, width)
    if len(whole) + 2 * len(INDENT) <= width or len(pieces) == 1:
        yield whole
        return
    yield f"{INDENT}{name}=("
    yield from (f"{INDENT}{INDENT}{literal(piece)}" for piece in pieces)
    yield f"{INDENT}),"


def _mapping(value: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{literal(k)}: {literal(v)}" for k, v in value.items()) + "}"


def _names(name: str, values: tuple[str, ...], width: int) -> Iterator[str]:
    inner = ", ".join(map(literal, values)) + ("," if len(values) == 1 else "")
    line = f"{INDENT}{name}=({inner}),"
    if len(line) + 2 * len(INDENT) <= width:
        yield line
        return
    yield f"{INDENT}{name}=("
    yield from (f"{INDENT}{INDENT}{literal(value)}," for value in values)
    yield f"{INDENT}),"


def _pieces(text: str, width: int) -> list[str]:
    """Return a text in pieces that fit on a line each, cut behind spaces."""
    room = max(_LEAST, width - 4 * len(INDENT))
    pieces: list[str] = []
    piece = ""
    for word in _words(text):
        if piece and len(literal(piece + word)) > room:
            pieces.append(piece)
            piece = ""
        piece += word
    return [*pieces, piece]


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text, each with the spaces behind it."""
    word = ""
    for character in text:
        if word.endswith(" ") and character != " ":
            yield word
            word = ""
        word += character
    yield word


def literal(text: str) -> str:
    r"""Return a text as a literal: in double quotes unless others save a backslash.

    What does not print is escaped, so nothing in a text ends a line or hides in it.

    Args:
        text: Any text.
    """
    quote = "'" if '"' in text and "'" not in text else '"'
    return quote + "".join(_escaped(character, quote) for character in text) + quote


def _escaped(character: str, quote: str) -> str:
    if character in {"\\", quote}:
        return f"\\{character}"
    if character.isprintable():
        return character
    if character in "\n\t\r":
        return json.dumps(character)[1:-1]
    return ascii(character)[1:-1]
