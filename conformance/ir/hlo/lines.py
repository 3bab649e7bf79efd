"""The lines of a text, bodies that stand within an instruction put before it.

`HloPrintOptions.canonical()` prints a called computation where it is called:

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

from conformance.ir.hlo.lexing import QUOTED, Unexpected, closing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Line: TypeAlias = tuple[int, str]
"""Number, counted from 1, and text."""

_BEFORE_HEADER = re.compile(r"(?>(?:\s++|//[^\n]*+)*)")
_BEFORE_BODY = ("=", "={", ",")
_BODY = re.compile(r"={?\n *\{\n")
_LIST = re.compile(r"inline\.\d+(?:,inline\.\d+)*")
_REST_OF_LINE = re.compile(rf"(?>(?:[^\n\[\](){{}}\"]++|{QUOTED})*)", re.DOTALL)


def header(text: str) -> tuple[str, int]:
    """Return the module's header, which may be several lines, and the number of the line after it.

    Raises:
        Unexpected: If the text does not begin with one.
    """
    start = _after(_BEFORE_HEADER, text, 0)
    if not text.startswith("HloModule", start):
        raise Unexpected(text[start : start + 60].partition("\n")[0], "'HloModule name'")
    end = start
    while True:
        end = _after(_REST_OF_LINE, text, end)
        if end == len(text) or (text[end] == "\n" and text[end - 1] != ","):
            return text[start:end], text.count("\n", 0, end) + 2
        end = end + 1 if text[end] in '\n"])}' else closing(text, end)


def _after(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def lines(text: str, first: int) -> Iterable[Line]:
    """Return the lines from the one numbered `first` on."""
    numbered = islice(enumerate(text.split("\n"), 1), first - 1, None)
    return unfolded(numbered) if _BODY.search(text) else numbered


def unfolded(numbered: Iterable[Line]) -> Iterator[Line]:
    """Yield lines with each body that stands within an instruction as a computation before it."""
    outer: list[list[Line]] = []
    here: list[Line] = []
    count = 0
    for number, line in numbered:
        text = line.strip()
        last = here[-1][1] if here else ""
        if text == "{" and last.endswith(_BEFORE_BODY):
            outer.append(here)
            here = [(number, f"inline.{count} {{")]
            count += 1
        elif text.startswith("}") and _LIST.fullmatch(last.rpartition("={")[2]):
            here[-1] = (here[-1][0], last + text)
        elif text.startswith("}") and outer:
            yield from here
            yield number, "}"
            name = here[0][1].removesuffix(" {")
            here = outer.pop()
            begun, head = here[-1]
            here[-1] = (begun, head + name + text[1:])
        else:
            here.append((number, line))
            if not outer and (text.startswith("}") or not here[0][1].endswith("{")):
                yield from here
                here = []
    for rest in (*outer, here):
        yield from rest
