"""The lexical level of HLO text: lines, brackets, quotes, comments, lists.

`HloPrintOptions.canonical()` prints a called computation where it is called; `number_lines` puts
it before the instruction:

    ROOT tmp_2 = f32[] reduce(f32[4]{0} tmp_0, f32[] tmp_1), dimensions={0}, to_apply=
    {
      tmp_0 = f32[] parameter(0)
      ...
    }
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Line: TypeAlias = tuple[int, str]
"""Number, counted from 1, and text."""

DEEPEST = 100
"""Limit of nested brackets: real modules stay below ten, and recursion stays safe."""
LARGEST = 1 << 20
"""Limit of devices in a list, so that a short text such as an iota cannot fill the memory."""

# Possessive groups throughout: a malformed text of megabytes must not make a pattern backtrack.
QUOTED = r'"(?>(?:[^"\\]++|\\.)*)"'
NAME = r"[\w.\-]++"
INTEGER = r"-?\d{1,19}+"

_BRACKET = re.compile(rf"[()\[\]{{}}]|{QUOTED}|\"", re.DOTALL)
_CLOSER = {"(": ")", "[": "]", "{": "}"}
_PART = re.compile(rf"(?>(?:[^,()\[\]{{}}\"]++|{QUOTED})*)", re.DOTALL)
_COMMENT = re.compile(r"/\*[^*]*+\*/")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}
_WHOLE_INTEGER = re.compile(INTEGER, re.ASCII)
_WHOLE_QUOTED = re.compile(QUOTED, re.DOTALL)

_BEFORE_HEADER = re.compile(r"(?>(?:\s++|//[^\n]*+)*)")
_BEFORE_BODY = ("=", "={", ",")
_BODY = re.compile(r"={?\n *\{\n")
# The names that `_unfold_bodies` gives to the computations of a list.
_LIST = re.compile(r"inline\.\d+(?:,inline\.\d+)*")
_REST_OF_LINE = re.compile(rf"(?>(?:[^\n\[\](){{}}\"]++|{QUOTED})*)", re.DOTALL)


class HloTextError(Exception):
    """Text that does not fit the grammar.

    Attributes:
        got: The text found.
        expected: A description of the expected text.
        line: Number of its line, 0 for the line being read.
    """

    def __init__(self, got: str, expected: str, line: int = 0) -> None:
        super().__init__(got, expected)
        # The rest of a line may have megabytes; its start shows the place.
        self.got = got[:60] or "end of line"
        self.expected = expected
        self.line = line


def find_closing(text: str, start: int) -> int:
    """Return the position after the bracket that closes the opening bracket at `start`.

    Raises:
        HloTextError: If no bracket closes it, or the brackets do not match.
    """
    open_: list[str] = []
    for match in _BRACKET.finditer(text, start):
        found = match[0]
        if found in _CLOSER:
            open_.append(_CLOSER[found])
            if len(open_) > DEEPEST:
                raise HloTextError(found, f"brackets nested at most {DEEPEST} deep")
        # A quoted text matches whole, so a single quote has no end.
        elif found == '"':
            raise HloTextError(text[match.start() :], "a closing quote")
        elif len(found) == 1:
            if found != open_.pop():
                raise HloTextError(text[match.start() :], "a matching bracket")
            if not open_:
                return match.end()
    raise HloTextError("end of line", f"{open_[-1]!r}")


def find_value_end(text: str, start: int) -> int:
    """Return where the value that begins at `start` ends: at a comma outside brackets, or the end.

    Raises:
        HloTextError: If a bracket or quote is not closed, or a bracket was not opened.
    """
    while True:
        match = _PART.match(text, start)
        start = match.end() if match else start
        if start == len(text) or text[start] == ",":
            return start
        if text[start] not in _CLOSER:
            raise HloTextError(text[start:], "a value")
        start = find_closing(text, start)


def split_parts(text: str) -> Iterator[str]:
    """Yield the parts between commas outside brackets, stripped; none for an empty text."""
    if not text or text.isspace():
        return
    start = 0
    while True:
        end = find_value_end(text, start)
        yield text[start:end].strip()
        if end == len(text):
            return
        start = end + 1


def strip_brackets(text: str, brackets: str = "{}") -> str:
    """Return the content of a bracketed text.

    Raises:
        HloTextError: If the text is anything else.
    """
    if text[:1] != brackets[0] or find_closing(text, 0) != len(text):
        raise HloTextError(text, f"'{brackets[0]}...{brackets[1]}'")
    return text[1:-1].strip()


def strip_comments(text: str) -> str:
    """Return a text without `/*index=5*/` and the like."""
    # The check is cheaper than a substitution, and most texts have no comment.
    return _COMMENT.sub("", text) if "/*" in text else text


def match_all(pattern: re.Pattern[str], text: str, expected: str) -> re.Match[str]:
    """Match a whole text.

    Raises:
        HloTextError: If the pattern does not fit.
    """
    match = pattern.fullmatch(text)
    if match is None:
        raise HloTextError(text, expected)
    return match


def match_parts(pattern: re.Pattern[str], text: str, expected: str) -> Iterator[re.Match[str]]:
    """Match each part of a list in braces.

    Raises:
        HloTextError: If the pattern does not fit a part.
    """
    for part in split_parts(strip_brackets(text)):
        yield match_all(pattern, part, expected)


def parse_integer(text: str) -> int:
    """Return an integer.

    Raises:
        HloTextError: If the text is no integer, or has more than 19 digits.
    """
    return int(match_all(_WHOLE_INTEGER, text, "an integer")[0])


def parse_integers(text: str) -> tuple[int, ...]:
    """Return integers separated by commas."""
    return tuple([parse_integer(part.strip()) for part in text.split(",")]) if text.strip() else ()


def unquote(text: str) -> str:
    """Return the content of a quoted string, C escapes resolved.

    Raises:
        HloTextError: If the text is anything else.
    """
    content = match_all(_WHOLE_QUOTED, text, "a quoted string")[0][1:-1]
    return _ESCAPE.sub(_unescape, content) if "\\" in content else content


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    return chr(int(code, 8)) if code.isdigit() and code[0] < "8" else _LETTERS.get(code, code)


def split_header(text: str) -> tuple[str, int]:
    """Return the module's header, which may be several lines, and the number of the line after it.

    Raises:
        HloTextError: If the text does not begin with a header.
    """
    start = _skip_match(_BEFORE_HEADER, text, 0)
    if not text.startswith("HloModule", start):
        raise HloTextError(text[start : start + 60].partition("\n")[0], "'HloModule name'")
    end = start
    while True:
        end = _skip_match(_REST_OF_LINE, text, end)
        if end == len(text) or (text[end] == "\n" and text[end - 1] != ","):
            return text[start:end], text.count("\n", 0, end) + 2
        # A header may break its line after a comma and within brackets.
        end = end + 1 if text[end] in '\n"])}' else find_closing(text, end)


def _skip_match(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return the end of the match that begins at `start`; `start` itself without a match there."""
    match = pattern.match(text, start)
    return match.end() if match else start


def number_lines(text: str, first: int) -> Iterable[Line]:
    """Return the lines from number `first` on; bodies within instructions precede these."""
    numbered = islice(enumerate(text.split("\n"), 1), first - 1, None)
    # Only `HloPrintOptions.canonical()` needs the slower generator.
    return _unfold_bodies(numbered) if _BODY.search(text) else numbered


def _unfold_bodies(numbered: Iterable[Line]) -> Iterator[Line]:
    """Yield lines, with each body within an instruction moved to a computation before it."""
    outer: list[list[Line]] = []
    block: list[Line] = []
    count = 0
    for number, line in numbered:
        text = line.strip()
        last = block[-1][1] if block else ""
        if text == "{" and last.endswith(_BEFORE_BODY):
            outer.append(block)
            block = [(number, f"inline.{count} {{")]
            count += 1
        elif text.startswith("}") and _LIST.fullmatch(last.rpartition("={")[2]):
            block[-1] = (block[-1][0], last + text)
        elif text.startswith("}") and outer:
            yield from block
            yield number, "}"
            # The name replaces the body, so that the parser needs no second grammar.
            name = block[0][1].removesuffix(" {")
            block = outer.pop()
            begun, head = block[-1]
            block[-1] = (begun, head + name + text[1:])
        else:
            block.append((number, line))
            # A complete computation goes out at once, so that only an open one is buffered.
            if not outer and (text.startswith("}") or not block[0][1].endswith("{")):
                yield from block
                block = []
    # A text that ends within a body: the parser reports the missing brace.
    for rest in (*outer, block):
        yield from rest
