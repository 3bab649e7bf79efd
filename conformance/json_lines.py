"""Logs of one JSON document per line, which survive a killed process and a full disk."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, TypeVar

import msgspec

from conformance.files import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

T = TypeVar("T")


class MalformedLineError(ValueError):
    """A line that cannot be decoded.

    Args:
        number: Number of the line, from 1.
        reason: Message of the decoder.
    """

    def __init__(self, number: int, reason: str) -> None:
        super().__init__(f"line {number}: {reason}")
        self.number = number
        self.reason = reason


def open_log(path: Path) -> int:
    """Open a log for appending, and return its file descriptor.

    A last line without a line break, which a killed process left, is removed: the next line would
    continue it.

    Args:
        path: File of the log, created if missing.

    Raises:
        OSError: If the disk refuses.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        content = os.pread(descriptor, size, 0) if size else b""
        whole = content.rfind(b"\n") + 1
        if whole != size:
            os.ftruncate(descriptor, whole)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def append_line(descriptor: int, line: bytes, *, durable: bool) -> None:
    """Append a line completely, or leave the log unchanged.

    Args:
        descriptor: File descriptor of `open_log`.
        line: JSON document, without a line break.
        durable: Whether to wait for the disk.

    Raises:
        OSError: If the disk refuses.
    """
    size = os.fstat(descriptor).st_size
    left = line + b"\n"
    try:
        while left:  # a signal or a full disk may cut a write
            left = left[os.write(descriptor, left) :]
        if durable:
            os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, size)
        raise


def decode_log(content: bytes, kind: type[T]) -> list[T]:
    """Return the documents of a log, without an unfinished last line.

    Args:
        content: Content of the log.
        kind: Type of the documents.

    Raises:
        MalformedLineError: If another line is malformed.
    """
    decoder = msgspec.json.Decoder(kind)
    # A view, because a copy would double the memory for a large log.
    whole = memoryview(content)[: content.rfind(b"\n") + 1]
    with contextlib.suppress(*MALFORMED):  # the malformed line is found below
        documents = decoder.decode_lines(whole)
        if len(documents) == content.count(b"\n"):
            return documents
    return list(_decode_each(whole, decoder))


def _decode_each(content: memoryview, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
    """Decode lines one by one, to find the malformed one; decoding all at once is faster."""
    for number, line in enumerate(bytes(content).split(b"\n")[:-1], 1):
        try:
            yield decoder.decode(line)
        except MALFORMED as error:
            raise MalformedLineError(number, str(error)) from None
