"""The primitives of MLIR's bytecode: numbers, texts and sections, one after another."""

from __future__ import annotations

from typing import Final

_LONG: Final = 8
"""How many bytes follow a first byte of zero."""
_ALIGNED, _PADDING = 0x80, 0xCB


class NotReadError(ValueError):
    """Bytes that are no bytecode as it is known here; the message says what was expected."""


class Cursor:
    """A place in some bytes.

    Attributes:
        at: Where it is.
    """

    __slots__ = ("_data", "at")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self.at

    def take(self, count: int) -> bytes:
        """Step over some bytes and return them."""
        if count > self.left:
            raise NotReadError(f"{count} more bytes")
        self.at += count
        return self._data[self.at - count : self.at]

    def byte(self) -> int:
        """Step over one byte."""
        return self.take(1)[0]

    def varint(self) -> int:
        """Step over a number: the zeros that end its first byte say how many bytes follow."""
        first = self.byte()
        if first & 1:
            return first >> 1
        if first == 0:
            return int.from_bytes(self.take(_LONG), "little")
        more = (first & -first).bit_length() - 1
        return (first | int.from_bytes(self.take(more), "little") << 8) >> (more + 1)

    def signed(self) -> int:
        """Step over a number whose lowest bit is its sign."""
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def flagged(self) -> tuple[int, bool]:
        """Step over a number whose lowest bit is a flag of its own."""
        number = self.varint()
        return number >> 1, bool(number & 1)

    def varints(self) -> list[int]:
        """Step over numbers, how many of them said before."""
        return [self.varint() for _ in range(self.varint())]

    def blob(self) -> bytes:
        """Step over bytes, how many of them said before."""
        return self.take(self.varint())

    def terminated(self) -> bytes:
        """Step over bytes up to a zero, and over that."""
        end = self._data.find(b"\0", self.at)
        if end < 0:
            raise NotReadError("a zero at the end of a text")
        text = self._data[self.at : end]
        self.at = end + 1
        return text

    def section(self) -> tuple[int, bytes]:
        """Step over a section; return its number and what it holds."""
        number, length = self.byte(), self.varint()
        if number & _ALIGNED:
            alignment = self.varint()
            while (
                self.left and self._data[self.at] == _PADDING and alignment and self.at % alignment
            ):
                self.at += 1
        return number & ~_ALIGNED, self.take(length)
