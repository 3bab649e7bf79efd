"""MLIR's bytecode: its primitives, and the container of a module's tables and operations.

The format is documented as "MLIR Bytecode Format". Its versions 0 and 6 are known: Mosaic writes
the first, so that any release reads it, and Triton the current one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

T = TypeVar("T")

MAGIC: Final = b"ML\xefR"
CURRENT: Final = 6
"""The version of the format with flags, properties, use lists and sections of regions."""
# How many bytes follow a first byte of zero.
_LONG: Final = 8
_ALIGNED, _PADDING = 0x80, 0xCB


class _Section(IntEnum):
    STRINGS = 0
    DIALECTS = 1
    VALUES = 2
    OFFSETS = 3
    IR = 4
    PROPERTIES = 8


_REQUIRED: Final = frozenset(_Section) - {_Section.PROPERTIES}


class BytecodeError(ValueError):
    """Bytes that are no bytecode of a known form; the message names the expected content."""


class Cursor:
    """A position in bytes.

    Attributes:
        position: Offset of the next byte.
    """

    __slots__ = ("_data", "position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    @property
    def remaining(self) -> int:
        """Number of bytes from the position on."""
        return len(self._data) - self.position

    def read_bytes(self, count: int) -> bytes:
        """Read a number of bytes."""
        # A slice would return fewer bytes without an error.
        if count > self.remaining:
            raise BytecodeError(f"{count} more bytes")
        self.position += count
        return self._data[self.position - count : self.position]

    def read_byte(self) -> int:
        """Read a byte."""
        return self.read_bytes(1)[0]

    def read_varint(self) -> int:
        """Read a number whose first byte ends in as many zeros as bytes follow."""
        first = self.read_byte()
        if first & 1:
            return first >> 1
        if first == 0:
            return int.from_bytes(self.read_bytes(_LONG), "little")
        more = (first & -first).bit_length() - 1
        return (first | int.from_bytes(self.read_bytes(more), "little") << 8) >> (more + 1)

    def read_signed(self) -> int:
        """Read a number whose lowest bit is its sign."""
        number = self.read_varint()
        return (number >> 1) ^ -(number & 1)

    def read_flagged(self) -> tuple[int, bool]:
        """Read a number whose lowest bit is a flag; return both."""
        number = self.read_varint()
        return number >> 1, bool(number & 1)

    def read_varints(self) -> list[int]:
        """Read a count and as many numbers."""
        return [self.read_varint() for _ in range(self.read_varint())]

    def read_blob(self) -> bytes:
        """Read a count and as many bytes."""
        return self.read_bytes(self.read_varint())

    def read_terminated(self) -> bytes:
        """Read bytes up to a zero, and the zero; return them without it."""
        end = self._data.find(b"\0", self.position)
        if end < 0:
            raise BytecodeError("a zero at the end of a text")
        text = self._data[self.position : end]
        self.position = end + 1
        return text

    def read_section(self) -> tuple[int, bytes]:
        """Read a section; return its number and its content."""
        number, length = self.read_byte(), self.read_varint()
        if number & _ALIGNED:
            alignment = self.read_varint()
            data, end = self._data, len(self._data)
            while alignment and self.position % alignment and self.position < end:
                if data[self.position] != _PADDING:
                    break
                self.position += 1
        return number & ~_ALIGNED, self.read_bytes(length)


class StoredEntry(NamedTuple):
    """An attribute or type as stored.

    Attributes:
        dialect: The dialect that it belongs to.
        data: Its encoding.
        is_text: Whether the encoding is its spelling.
    """

    dialect: str
    data: bytes
    is_text: bool


@dataclass(slots=True)
class Container:
    """The content of bytecode; entries of tables are known by their number.

    Attributes:
        is_current: Whether the version of the format is `CURRENT`, not 0.
        strings: Texts.
        operations: Name of each operation with its dialect, and whether the dialect knew it.
        attributes: Attributes.
        types: Types.
        properties: Encoded properties of operations.
        code: The operations.
    """

    is_current: bool
    strings: list[str] = field(default_factory=list)
    operations: list[tuple[str, bool]] = field(default_factory=list)
    attributes: list[StoredEntry] = field(default_factory=list)
    types: list[StoredEntry] = field(default_factory=list)
    properties: list[bytes] = field(default_factory=list)
    code: bytes = b""


def read_container(data: bytes) -> Container:
    """Read bytecode up to its operations.

    Raises:
        BytecodeError: If it is no bytecode, or of an unknown version.
    """
    cursor = Cursor(data)
    if cursor.read_bytes(len(MAGIC)) != MAGIC:
        raise BytecodeError("MLIR bytecode")
    version = cursor.read_varint()
    if version not in {0, CURRENT}:
        raise BytecodeError(f"version 0 or {CURRENT}")
    is_current = version == CURRENT
    cursor.read_terminated()  # the producer
    sections: dict[int, bytes] = {}
    while cursor.remaining:
        number, content = cursor.read_section()
        if number in sections:
            raise BytecodeError("each section once")
        sections[number] = content
    if not sections.keys() >= _REQUIRED:
        raise BytecodeError("a section of each kind")
    strings = _read_strings(Cursor(sections[_Section.STRINGS]))
    dialects, operations = _read_names(Cursor(sections[_Section.DIALECTS]), strings, is_current)
    offsets, values = Cursor(sections[_Section.OFFSETS]), Cursor(sections[_Section.VALUES])
    # Both counts precede both tables, and the values of types follow those of attributes.
    counts = offsets.read_varint(), offsets.read_varint()
    attributes, types = (_read_entries(count, offsets, values, dialects) for count in counts)
    stored = Cursor(sections.get(_Section.PROPERTIES, b"\1"))  # a count of zero
    properties = [stored.read_blob() for _ in range(stored.read_varint())]
    code = sections[_Section.IR]
    return Container(is_current, strings, operations, attributes, types, properties, code)


def lookup(table: list[T], number: int) -> T:
    """Return an entry of a table by its number.

    Raises:
        BytecodeError: If the table is too short.
    """
    if number >= len(table):
        raise BytecodeError(f"a number below {len(table)}")
    return table[number]


def _read_strings(cursor: Cursor) -> list[str]:
    # The format stores sizes backwards, so that a writer can append texts.
    sizes = cursor.read_varints()[::-1]
    found = []
    for size in sizes:
        raw = cursor.read_bytes(size)
        if raw[-1:] != b"\0":
            raise BytecodeError("a zero at the end of a text")
        try:
            found.append(raw[:-1].decode())
        except UnicodeDecodeError:
            # A string attribute may hold any bytes; Latin-1 keeps each of them.
            found.append(raw[:-1].decode("latin-1"))
    return found


def _read_names(
    cursor: Cursor, strings: list[str], is_current: bool
) -> tuple[list[str], list[tuple[str, bool]]]:
    """Read the names of dialects and of operations."""
    dialects, operations = [], []
    for _ in range(cursor.read_varint()):
        name, has_version = cursor.read_flagged() if is_current else (cursor.read_varint(), False)
        dialects.append(lookup(strings, name))
        # The version of a dialect differs between releases that write the same operations.
        if has_version:
            cursor.read_section()
    if is_current:
        cursor.read_varint()  # the number of operations
    while cursor.remaining:
        dialect = lookup(dialects, cursor.read_varint())
        for _ in range(cursor.read_varint()):
            name, is_known = cursor.read_flagged() if is_current else (cursor.read_varint(), True)
            operations.append((f"{dialect}.{lookup(strings, name)}", is_known))
    return dialects, operations


def _read_entries(
    count: int, offsets: Cursor, values: Cursor, dialects: list[str]
) -> list[StoredEntry]:
    """Read the attributes, or the types: groups of one dialect each."""
    entries: list[StoredEntry] = []
    while len(entries) < count:
        dialect = lookup(dialects, offsets.read_varint())
        sizes = offsets.read_varints()
        entries += [StoredEntry(dialect, values.read_bytes(s >> 1), not s & 1) for s in sizes]
        # An empty group would make no progress: a few bytes could loop for ever.
        if not sizes or len(entries) > count:
            raise BytecodeError(f"{count} entries")
    return entries
