"""What all parts of HLO text have in common: brackets that match, quotes, comments, lists."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST = 100
"""How deep brackets may be nested: real modules stay below ten, and recursion stays safe."""
LARGEST = 1 << 20
"""How many devices a list may name; keeps a text of some bytes from filling the memory."""

QUOTED = r'"(?>(?:[^"\\]++|\\.)*)"'
NAME = r"[\w.\-]++"
INTEGER = r"-?\d{1,19}+"

_BRACKET = re.compile(rf"[()\[\]{{}}]|{QUOTED}|\"", re.DOTALL)
_CLOSER = {"(": ")", "[": "]", "{": "}"}
_PART = re.compile(rf"(?>(?:[^,()\[\]{{}}\"]++|{QUOTED})*)", re.DOTALL)
_COMMENT = re.compile(r"/\*[^*]*+\*/")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}
_ODD = re.compile(r'[\\"\x00-\x1f\x7f]')


class Unexpected(Exception):  # noqa: N818 - becomes an IrSyntaxError once the line is known
    """Text that does not fit the grammar.

    Attributes:
        got: What was found.
        expected: What should have been there.
        line: Number of its line, 0 for the one being read.
    """

    def __init__(self, got: str, expected: str, line: int = 0) -> None:
        super().__init__(got, expected)
        self.got = got[:60] or "end of line"
        self.expected = expected
        self.line = line


def closing(text: str, start: int) -> int:
    """Return the position after the bracket that closes the one at `start`.

    Raises:
        Unexpected: If none does.
    """
    open_: list[str] = []
    for match in _BRACKET.finditer(text, start):
        found = match[0]
        if found in _CLOSER:
            open_.append(_CLOSER[found])
            if len(open_) > DEEPEST:
                raise Unexpected(found, f"brackets nested at most {DEEPEST} deep")
        elif found == '"':
            raise Unexpected(text[match.start() :], "a closing quote")
        elif len(found) == 1:
            if found != open_.pop():
                raise Unexpected(text[match.start() :], "a matching bracket")
            if not open_:
                return match.end()
    raise Unexpected("end of line", f"{open_[-1]!r}")


def value_end(text: str, start: int) -> int:
    """Return where the value that begins at `start` ends: at a comma outside brackets, or the end.

    Raises:
        Unexpected: If a bracket or quote is not closed, or one is closed that was not opened.
    """
    while True:
        match = _PART.match(text, start)
        start = match.end() if match else start
        if start == len(text) or text[start] == ",":
            return start
        if text[start] not in _CLOSER:
            raise Unexpected(text[start:], "a value")
        start = closing(text, start)


def parts(text: str) -> Iterator[str]:
    """Yield what stands between the commas outside brackets, without spaces around.

    Nothing for an empty text. An empty part is the caller's to judge.
    """
    if not text or text.isspace():
        return
    start = 0
    while True:
        end = value_end(text, start)
        yield text[start:end].strip()
        if end == len(text):
            return
        start = end + 1


def inside(text: str, brackets: str = "{}") -> str:
    """Return what a bracketed text holds.

    Raises:
        Unexpected: If the text is not one bracketed text.
    """
    if text[:1] != brackets[0] or closing(text, 0) != len(text):
        raise Unexpected(text, f"'{brackets[0]}...{brackets[1]}'")
    return text[1:-1].strip()


def without_comments(text: str) -> str:
    """Return a text without `/*index=5*/` and the like."""
    return _COMMENT.sub("", text) if "/*" in text else text


def integer(text: str) -> int:
    """Return an integer.

    Raises:
        Unexpected: If the text is not one, or has more than 19 digits.
    """
    if re.fullmatch(INTEGER, text, re.ASCII) is None:
        raise Unexpected(text, "an integer")
    return int(text)


def integers(text: str) -> tuple[int, ...]:
    """Return integers separated by commas."""
    return tuple([integer(part.strip()) for part in text.split(",")]) if text.strip() else ()


def unquoted(text: str) -> str:
    """Return the content of a quoted string, C escapes resolved.

    Raises:
        Unexpected: If the text is not one quoted string.
    """
    if re.fullmatch(QUOTED, text, re.DOTALL) is None:
        raise Unexpected(text, "a quoted string")
    return _ESCAPE.sub(_unescaped, text[1:-1]) if "\\" in text else text[1:-1]


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdigit() and code[0] < "8" else _LETTERS.get(code, code)


def quoted(text: str) -> str:
    """Return a text in quotes, so that `unquoted` gives it back."""
    return f'"{_ODD.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    return f"\\{char}" if char in '\\"' else f"\\{ord(char):03o}"
