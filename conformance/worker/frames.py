"""The wire between orchestrator, fork server and job: a JSON header and a body of bytes.

A frame is the header's length (4 bytes, big-endian), the header as UTF-8 JSON whose `body` is
the length of what follows, and the body.
"""

from __future__ import annotations

import json
import operator
import os
import struct
from typing import Any, NamedTuple

LENGTH = struct.Struct(">I")
# Limits, because a job that writes to the channel by mistake can name any length.
MAX_HEADER = 64 * 1024 * 1024
MAX_BODY = 1024 * 1024 * 1024
"""The largest `observation_mb` that a case may set."""


class Frame(NamedTuple):
    """One message: `header` is plain JSON data, `body` raw bytes (often none)."""

    header: dict[str, Any]
    body: bytes


class FrameError(Exception):
    """Bytes that are no frame: a job wrote to the channel."""


class FrameTooLargeError(FrameError):
    """A frame whose body is larger than its reader accepts."""


def encode(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Return the bytes of one frame."""
    head = json.dumps({**header, "body": len(body)}).encode()
    return LENGTH.pack(len(head)) + head + body


class Decoder:
    """Decodes frames from bytes that arrive in pieces of any size.

    Args:
        largest: Limit of the bytes of a body.

    Attributes:
        largest: The limit, which may be changed between two frames.
    """

    def __init__(self, largest: int = MAX_BODY) -> None:
        self.largest = largest
        self._pending = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Add bytes, and return the frames that they complete.

        Args:
            data: Next bytes of the stream.

        Returns:
            Complete frames in order, possibly none.

        Raises:
            FrameError: If the bytes cannot be a frame.
            FrameTooLargeError: If the body is larger than `largest`, before it has arrived.
        """
        self._pending += data
        frames = []
        while (frame := self._take()) is not None:
            frames.append(frame)
        return frames

    def _take(self) -> Frame | None:
        pending = self._pending
        if len(pending) < LENGTH.size:
            return None
        (size,) = LENGTH.unpack_from(pending)
        if size > MAX_HEADER:
            raise FrameError(f"frame header of {size} bytes, expected at most {MAX_HEADER}")
        start = LENGTH.size + size
        if len(pending) < start:
            return None
        try:
            header = _parse_header(bytes(pending[LENGTH.size : start]))
            end = start + operator.index(header["body"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise FrameError(
                f"frame header is no JSON object with a body length: {error}"
            ) from None
        if end < start:
            raise FrameError(f"frame body of {header['body']} bytes, expected 0 or more")
        if end - start > self.largest:
            raise FrameTooLargeError(
                f"frame body of {end - start} bytes, expected at most {self.largest}"
            )
        if len(pending) < end:
            return None
        body = bytes(pending[start:end])
        del pending[:end]
        return Frame(header, body)


def _parse_header(data: bytes) -> dict[str, Any]:
    """Return a header, all of whose texts can be encoded as UTF-8.

    JSON can escape a lone surrogate, which is how Python spells the bytes of a file name that is
    not UTF-8. The message of an exception may contain such a name, and no UTF-8 file can.
    """
    header = json.loads(data)
    half = b"\\ud" in data.lower()  # costs little, and is rare
    return escape_surrogates(header) if half else header  # type: ignore[no-any-return] # JSON of any kind


def escape_surrogates(data: Any) -> Any:
    """Return JSON data with lone surrogates escaped with backslashes: UTF-8 cannot encode them.

    Args:
        data: Plain data: texts, numbers, lists, dictionaries.
    """
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, list):
        return [escape_surrogates(value) for value in data]
    if isinstance(data, dict):
        return {escape_surrogates(name): escape_surrogates(value) for name, value in data.items()}
    return data


def write(fd: int, header: dict[str, Any], body: bytes = b"") -> None:
    """Write a complete frame to a file descriptor.

    Args:
        fd: Descriptor in blocking mode.
        header: Plain JSON data.
        body: Raw bytes.

    Raises:
        OSError: If the other end is gone.
    """
    # `os.write` may write only a part, and a signal handler may run between two parts.
    view = memoryview(encode(header, body))
    while view:
        view = view[os.write(fd, view) :]
