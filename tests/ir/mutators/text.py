"""HLO text as lines and their parts: all that the mutators know about it.

Kept apart from `conformance.ir` on purpose: what checks a parser must not trust it. What is not
changed is written back as it was read, to the byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE = re.compile(r"(\s+)(ROOT )?(%?)([\w.\-]+) = ")
HEADER = re.compile(r"(ENTRY )?(%?)([\w.\-]+) (\(.*\) -> .* \{)$")
ARRAY = re.compile(r"([a-z][a-z0-9]*)\[([^\]]*)\](\{[^{}]*\})?")
COMMENT = re.compile(r"/\*index=\d+\*/")
CALLS = re.compile(
    r"^(calls|to_apply|condition|body|true_computation|false_computation|select|scatter|comparator)="
    r"(%?)([\w.\-]+)$"
)
CALL_LISTS = re.compile(r"^(branch_computations|called_computations)=\{(.*)\}$")
OPENING, CLOSING = "([{", ")]}"


def end_of(text: str, start: int) -> int:
    """Return where the bracket that opens at `start` is closed, just behind it."""
    depth, at = 0, start
    while at < len(text):
        char = text[at]
        if char == '"':
            at = end_of_string(text, at)
            continue
        depth += (char in OPENING) - (char in CLOSING)
        at += 1
        if depth == 0:
            return at
    raise ValueError(f"unclosed bracket, expected its end: {text[start : start + 60]}")


def end_of_string(text: str, start: int) -> int:
    """Return where the string that opens at `start` ends, just behind its quote."""
    at = start + 1
    while text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at + 1


def split(text: str) -> list[str]:
    """Return the parts between the outer commas, with the blanks after them left out."""
    parts, begin, at = [], 0, 0
    while at < len(text):
        if text[at] == '"':
            at = end_of_string(text, at)
        elif text[at] in OPENING:
            at = end_of(text, at)
        elif text[at] == ",":
            parts.append(text[begin:at])
            at += 1 + text[at + 1 : at + 2].count(" ")
            begin = at
        else:
            at += 1
    return [*parts, text[begin:]] if text else []


@dataclass(eq=False)
class Line:
    """An instruction: `INDENT [ROOT] %NAME = TYPE OP(OPERANDS), ATTRIBUTES`."""

    indent: str
    root: bool
    sign: str
    name: str
    type: str
    op: str
    operands: list[str]
    attributes: list[str]

    def __str__(self) -> str:
        """Return the line."""
        root = "ROOT " if self.root else ""
        tail = "".join(f", {a}" for a in self.attributes)
        inside = ", ".join(self.operands)
        return f"{self.indent}{root}{self.sign}{self.name} = {self.type} {self.op}({inside}){tail}"

    @property
    def takes(self) -> list[str]:
        """Names of the operands, in order; a literal has none."""
        if self.op in {"constant", "parameter"}:
            return []
        return [o.rsplit(" ", 1)[-1].rsplit("/", 1)[-1].lstrip("%") for o in self.operands]

    def rewire(self, old: str, new: str, only: int | None = None) -> int:
        """Make operands that are `old` be `new`; return how many were."""
        found = [i for i, n in enumerate(self.takes) if n == old and only in {None, i}]
        for i in found:
            self.operands[i] = re.sub(
                rf"(^|[ %/]){re.escape(old)}$", rf"\g<1>{new}", self.operands[i]
            )
        return len(found)

    def get(self, key: str) -> str | None:
        """Return the value of an attribute."""
        for attribute in self.attributes:
            name, equal, value = attribute.partition("=")
            if equal and name == key:
                return value
        return None

    def put(self, key: str, value: str | None) -> None:
        """Set an attribute where it stands, or append it, or take it away."""
        for i, attribute in enumerate(self.attributes):
            if attribute.startswith(f"{key}="):
                self.attributes[i : i + 1] = [] if value is None else [f"{key}={value}"]
                return
        if value is not None:
            at = next((i for i, a in enumerate(self.attributes) if a.startswith(LAST)), None)
            at = len(self.attributes) if at is None else at
            self.attributes.insert(at, f"{key}={value}")

    def callees(self) -> list[str]:
        """Return the names of the computations it calls, in order."""
        found = []
        for attribute in self.attributes:
            if one := CALLS.match(attribute):
                found.append(one[3])
            elif many := CALL_LISTS.match(attribute):
                found += [name.strip().lstrip("%") for name in many[2].split(",")]
        return found

    def roles(self) -> list[str]:
        """Return as what it calls each of them: `body`, `branch_computations 0` ..."""
        found = []
        for attribute in self.attributes:
            if one := CALLS.match(attribute):
                found.append(one[1])
            elif many := CALL_LISTS.match(attribute):
                found += [f"{many[1]} {i}" for i in range(len(many[2].split(",")))]
        return found

    def recall(self, renamed: dict[str, str]) -> None:
        """Rename the computations it calls."""
        for i, attribute in enumerate(self.attributes):
            if one := CALLS.match(attribute):
                self.attributes[i] = f"{one[1]}={one[2]}{renamed.get(one[3], one[3])}"
            elif many := CALL_LISTS.match(attribute):
                sign = "%" * many[2].startswith("%")
                names = [n.strip().lstrip("%") for n in many[2].split(",")]
                inside = ", ".join(sign + renamed.get(n, n) for n in names)
                self.attributes[i] = f"{many[1]}={{{inside}}}"

    @property
    def dtype(self) -> str:
        """Element type of an array, empty for a tuple."""
        found = ARRAY.match(self.type)
        return found[1] if found else ""

    @property
    def shape(self) -> list[int]:
        """Sizes of an array; empty for a tuple, and for what is not fixed."""
        found = ARRAY.match(self.type)
        return (
            [int(n) for n in found[2].split(",")]
            if found and re.match(r"[\d,]+$", found[2])
            else []
        )

    def copy(self, **changes: object) -> Line:
        """Return another one that is the same but for some parts."""
        same = {**vars(self), "operands": [*self.operands], "attributes": [*self.attributes]}
        return Line(**{**same, "root": False, **changes})


LAST = ("metadata=", "backend_config=", "frontend_attributes=", "sharding=")
"""What is written after the attributes proper."""


@dataclass(eq=False)
class Block:
    """A computation: its header, its instructions, and all that stands until the next one."""

    entry: bool
    sign: str
    name: str
    rest: str
    lines: list[Line]
    footer: list[str]

    def __str__(self) -> str:
        """Return the lines."""
        first = f"{'ENTRY ' * self.entry}{self.sign}{self.name} {self.rest}"
        return "\n".join([first, *map(str, self.lines), *self.footer])

    @property
    def root(self) -> Line:
        """What it returns."""
        return next((line for line in self.lines if line.root), self.lines[-1])

    def by_name(self) -> dict[str, Line]:
        """Return its instructions by name."""
        return {line.name: line for line in self.lines}

    def parameters(self) -> list[Line]:
        """Return its parameters by number."""
        found = [line for line in self.lines if line.op == "parameter"]
        return sorted(found, key=lambda line: int(line.operands[0]))

    def users(self, name: str) -> list[tuple[Line, int]]:
        """Return where a value is used: the line and the number of the operand."""
        return [(line, i) for line in self.lines for i, n in enumerate(line.takes) if n == name]

    def live(self) -> set[str]:
        """Return the names that its result is made of."""
        known, found, open_ = self.by_name(), set[str](), [self.root.name]
        while open_:
            name = open_.pop()
            if name not in found:
                found.add(name)
                open_ += known[name].takes
        return found

    def replace(self, old: str, new: str, keep: Line | None = None) -> int:
        """Make all users of `old` but one line use `new`; return how many uses there were."""
        return sum(line.rewire(old, new) for line in self.lines if line is not keep)

    def insert_after(self, line: Line, *new: Line) -> None:
        """Put lines behind another one."""
        at = self.lines.index(line) + 1
        self.lines[at:at] = new


@dataclass(eq=False)
class Text:
    """A module: what stands before its first computation, then the computations."""

    head: list[str]
    blocks: list[Block] = field(default_factory=list)

    def __str__(self) -> str:
        """Return the text."""
        return "\n".join([*self.head, *map(str, self.blocks)])

    @property
    def entry(self) -> Block:
        """Where it begins."""
        return next(block for block in self.blocks if block.entry)

    def by_name(self) -> dict[str, Block]:
        """Return the computations by name."""
        return {block.name: block for block in self.blocks}

    def lines(self) -> Iterator[tuple[Block, Line]]:
        """Yield every instruction with the computation it is in."""
        for block in self.blocks:
            for line in block.lines:
                yield block, line

    def live(self) -> Iterator[tuple[Block, Line]]:
        """Yield the instructions that the entry's result is made of, also through calls."""
        known, found, open_ = self.by_name(), set[str](), [self.entry]
        while open_:
            block = open_.pop()
            if block.name in found:
                continue
            found.add(block.name)
            names = block.live()
            for line in block.lines:
                if line.name in names:
                    yield block, line
                    open_ += [known[n] for n in line.callees()]

    def inside(self, key: str) -> set[str]:
        """Return the names of the computations that are called as `key`, with what they call."""
        known, found = self.by_name(), set[str]()
        open_ = [n for _, line in self.live() if (n := (line.get(key) or "").lstrip("%"))]
        while open_:
            name = open_.pop()
            if name not in found:
                found.add(name)
                open_ += [n for line in known[name].lines for n in line.callees()]
        return found

    def header(self, key: str) -> str | None:
        """Return an attribute of the module."""
        return next(
            (p[len(key) + 1 :] for p in split(self.head[0]) if p.startswith(f"{key}=")), None
        )

    def put_header(self, key: str, value: str | None) -> None:
        """Set an attribute of the module, or take it away."""
        parts = [p for p in split(self.head[0]) if not p.startswith(f"{key}=")]
        self.head[0] = ", ".join([*parts, *([f"{key}={value}"] if value is not None else [])])

    def fresh(self, stem: str) -> str:
        """Return a name that no instruction and no computation has."""
        taken = {line.name for _, line in self.lines()} | {block.name for block in self.blocks}
        return next(n for i in range(len(taken) + 1) if (n := f"{stem}.{i + 7000}") not in taken)


def line_of(text: str) -> Line | None:
    """Return an instruction's parts, or None for another line."""
    found = LINE.match(text)
    if not found:
        return None
    at = found.end()
    end = end_of(text, at) if text[at] == "(" else ARRAY.match(text, at).end()  # type: ignore[union-attr]
    call = text.index("(", end)
    close = end_of(text, call)
    op, inside = text[end + 1 : call], text[call + 1 : close - 1]
    operands = [inside] if op in {"constant", "parameter"} else split(inside)
    attributes = split(text[close + 2 :])
    root = found[2] is not None
    return Line(found[1], root, found[3], found[4], text[at:end], op, operands, attributes)


def read(text: str) -> Text:
    """Return the parts of a module's text."""
    out = Text([])
    block: Block | None = None
    for row in text.split("\n"):
        header = HEADER.match(row)
        line = None if header or block is None else line_of(row)
        if header:
            block = Block(header[1] is not None, header[2], header[3], header[4], [], [])
            out.blocks.append(block)
        elif line is not None and block is not None:
            block.lines.append(line)
        elif block is not None:
            block.footer.append(row)
        else:
            out.head.append(row)
    return out


def parts_of(type_: str) -> list[str]:
    """Return the types in a tuple, or the type itself, without comments."""
    type_ = COMMENT.sub("", type_)
    return split(type_[1:-1]) if type_.startswith("(") else [type_]


def logical(type_: str) -> str:
    """Return a type without layout, memory spaces and comments."""
    return COMMENT.sub("", ARRAY.sub(r"\1[\2]", type_))
