"""The container of MLIR's bytecode: tables of texts, operations, attributes, types; and the IR.

The format is documented as "MLIR Bytecode Format"; its versions 0 to 6 are known here. The
producer's name is stepped over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from conformance.ir.kernels.cursor import Cursor, NotReadError

T = TypeVar("T")

MAGIC: Final = b"ML\xefR"


class FormatVersion(IntEnum):
    """The version of the format with which something came."""

    DIALECT_VERSIONS = 1
    SECTIONS_OF_REGIONS = 2
    ORDERS_OF_USES = 3
    UNKNOWN_LOCATIONS_LEFT_OUT = 4
    PROPERTIES = 5
    SPARSE_SEGMENTS = 6


class _Section(IntEnum):
    STRINGS = 0
    DIALECTS = 1
    VALUES = 2
    OFFSETS = 3
    IR = 4
    PROPERTIES = 8


class StoredEntry(NamedTuple):
    """An attribute or type as it is stored.

    Attributes:
        dialect: Whose it is.
        data: Its encoding.
        is_text: Whether that is its spelling.
    """

    dialect: str
    data: bytes
    is_text: bool


@dataclass(slots=True)
class Container:
    """Everything that is in some bytecode.

    Attributes:
        version: Version of the format.
        strings: Texts, by number.
        operations: Names of operations, with their dialects, by number; and whether its dialect
            knew the operation.
        attributes: By number.
        types: By number.
        properties: Encoded properties of operations, by number.
        code: The operations.
    """

    version: int
    strings: list[str] = field(default_factory=list)
    operations: list[tuple[str, bool]] = field(default_factory=list)
    attributes: list[StoredEntry] = field(default_factory=list)
    types: list[StoredEntry] = field(default_factory=list)
    properties: list[bytes] = field(default_factory=list)
    code: bytes = b""

    @classmethod
    def of(cls, data: bytes) -> Container:
        """Return the content of bytecode.

        Raises:
            NotReadError: If it is none, or of a version that is not known.
        """
        cursor = Cursor(data)
        if cursor.take(len(MAGIC)) != MAGIC:
            raise NotReadError("MLIR bytecode")
        found = cls(cursor.varint())
        if found.version > max(FormatVersion):
            raise NotReadError(f"version {max(FormatVersion)} at most")
        cursor.terminated()
        sections: dict[int, bytes] = {}
        while cursor.left:
            number, inside = cursor.section()
            if number in sections:
                raise NotReadError("each section once")
            sections[number] = inside
        needed = {_Section.STRINGS, _Section.DIALECTS, _Section.VALUES, _Section.OFFSETS}
        if not {*needed, _Section.IR} <= sections.keys():
            raise NotReadError("a section of each kind")
        found.strings = _strings(Cursor(sections[_Section.STRINGS]))
        dialects = found._dialects(Cursor(sections[_Section.DIALECTS]))
        values = Cursor(sections[_Section.VALUES])
        found._entries(Cursor(sections[_Section.OFFSETS]), values, dialects)
        if _Section.PROPERTIES in sections:
            stored = Cursor(sections[_Section.PROPERTIES])
            found.properties = [stored.blob() for _ in range(stored.varint())]
        found.code = sections[_Section.IR]
        return found

    def _dialects(self, cursor: Cursor) -> list[str]:
        dialects = []
        for _ in range(cursor.varint()):
            name, versioned = cursor.varint(), False
            if self.version >= FormatVersion.DIALECT_VERSIONS:
                name, versioned = name >> 1, bool(name & 1)
            dialects.append(at(self.strings, name))
            if versioned:
                cursor.section()
        if self.version >= FormatVersion.UNKNOWN_LOCATIONS_LEFT_OUT:
            cursor.varint()  # how many operations there are
        while cursor.left:
            dialect = at(dialects, cursor.varint())
            for number in cursor.varints():
                name, known = number, True
                if self.version >= FormatVersion.PROPERTIES:
                    name, known = number >> 1, bool(number & 1)
                self.operations.append((f"{dialect}.{at(self.strings, name)}", known))
        return dialects

    def _entries(self, offsets: Cursor, values: Cursor, dialects: list[str]) -> None:
        left = {"attributes": offsets.varint(), "types": offsets.varint()}
        for table, entries in (("attributes", self.attributes), ("types", self.types)):
            while len(entries) < left[table]:
                dialect = at(dialects, offsets.varint())
                sizes = offsets.varints()
                for size in sizes:
                    data = values.take(size >> 1)
                    entries.append(StoredEntry(dialect, data, not size & 1))
                if not sizes or len(entries) > left[table]:
                    raise NotReadError(f"{left[table]} {table}")


def at(table: list[T], number: int) -> T:
    """Return an entry of a table.

    Raises:
        NotReadError: If there is none of that number.
    """
    if number >= len(table):
        raise NotReadError(f"a number below {len(table)}")
    return table[number]


def _strings(cursor: Cursor) -> list[str]:
    sizes = cursor.varints()[::-1]
    found = []
    for size in sizes:
        raw = cursor.take(size)
        if raw[-1:] != b"\0":
            raise NotReadError("a zero at the end of a text")
        try:
            found.append(raw[:-1].decode())
        except UnicodeDecodeError:
            found.append(raw[:-1].decode("latin-1"))
    return found
