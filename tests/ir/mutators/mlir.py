"""StableHLO in MLIR's generic form as lines: all that its mutators know about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.ir.mutators.text import end_of, end_of_string, split

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE = re.compile(r'(\s*)((?:%\w+)(?::\d+)?)? ?=? ?"([a-z]+\.[a-z_0-9.]+)"\(([^()]*)\)(.*)$')
VALUE = re.compile(r"%\w+")


@dataclass(eq=False)
class Statement:
    """One line with an operation, in the function it is in."""

    at: int
    function: int
    result: str
    op: str
    operands: list[str]
    rest: str

    @property
    def whole(self) -> bool:
        """Whether it ends on its line: it has no regions."""
        return ") -> " in self.rest

    @property
    def types(self) -> tuple[list[str], str]:
        """Types of operands and of the result, as written; only of a whole one."""
        _, _, signature = without_location(self.rest).rpartition(" : (")
        inside, _, out = signature.partition(") -> ")
        return split(inside), out.strip()


@dataclass(eq=False)
class Program:
    """A module as lines."""

    rows: list[str]

    def __str__(self) -> str:
        """Return the text."""
        return "\n".join(self.rows)

    def statements(self) -> list[Statement]:
        """Return the lines with operations, in order."""
        found, function = [], 0
        for at, row in enumerate(self.rows):
            line = LINE.match(row)
            if line:
                function += line[3] == "func.func"
                result = (line[2] or "").partition(":")[0]
                found.append(Statement(at, function, result, line[3], split(line[4]), line[5]))
        return found

    def live(self) -> list[Statement]:
        """Return the statements whose results something needs."""
        every = self.statements()
        users: dict[tuple[int, str], list[Statement]] = {}
        for s in every:
            for operand in s.operands:
                users.setdefault((s.function, operand.partition("#")[0]), []).append(s)
        needed: dict[int, bool] = {}
        for s in reversed(every):
            used = users.get((s.function, s.result), [])
            needed[s.at] = not s.result or any(needed.get(u.at, True) for u in used)
        return [s for s in every if needed[s.at]]

    def replace(self, statement: Statement, new: str) -> None:
        """Make the function use another value instead of a statement's result."""
        start, end = self.span(statement)
        for i in range(start, end):
            self.rows[i] = re.sub(rf"{statement.result}\b(?!:)", new, self.rows[i])

    def span(self, statement: Statement) -> tuple[int, int]:
        """Return the rows of the function that a statement is in."""
        starts = [s.at for s in self.statements() if s.op == "func.func"]
        later = [at for at in starts if at > statement.at]
        return max(at for at in [0, *starts] if at <= statement.at), min([*later, len(self.rows)])

    def put(self, statement: Statement) -> None:
        """Write a changed statement back."""
        row = self.rows[statement.at]
        line = LINE.match(row)
        assert line is not None
        head = row[: line.start(3) - 1]
        inside = ", ".join(statement.operands)
        self.rows[statement.at] = f'{head}"{statement.op}"({inside}){statement.rest}'


def without_location(text: str) -> str:
    """Return a text without its places `loc(...)`."""
    out, at = [], 0
    while (found := text.find("loc(", at)) >= 0:
        if found and (text[found - 1].isalnum() or text[found - 1] in '#_."'):
            out.append(text[at : found + 4])
            at = found + 4
            continue
        out.append(text[at:found].removesuffix(" "))
        at = end_of(text, found + 3)
    return "".join([*out, text[at:]])


def strings_apart(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a text that are in quotes, and those that are not."""
    begin = at = 0
    while at < len(text):
        if text[at] != '"':
            at += 1
            continue
        yield False, text[begin:at]
        end = end_of_string(text, at)
        yield True, text[at:end]
        begin = at = end
    yield False, text[begin:]


def program(text: str) -> Program:
    """Return a module as lines."""
    return Program(text.split("\n"))
