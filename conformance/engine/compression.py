"""Decompressing what may come from elsewhere: a few bytes must not become gigabytes."""

from __future__ import annotations

from typing import Final

import zstandard

LARGEST: Final = 2**30
"""Bytes of an artifact, and of anything that is decompressed."""
_UNKNOWN: Final = 2**64 - 1
"""Content size of a frame that does not state it."""
_PIECE: Final = 2048
"""Compressed bytes given to the decompressor at once; they become 64 MiB at most."""


class DecompressionError(ValueError):
    """Bytes that are no whole frame of zstd, or become too many."""


def compress(data: bytes) -> bytes:
    """Return a zstd frame that states the size of its content."""
    return zstandard.compress(data, 3)


def decompress(data: bytes, largest: int = LARGEST) -> bytes:
    """Return the content of a zstd frame.

    Args:
        data: The frame.
        largest: Bytes that the content may have.

    Raises:
        DecompressionError: If it is damaged or cut, or its content is larger.
    """
    try:
        stated = zstandard.get_frame_parameters(data).content_size
        if stated == _UNKNOWN:
            return _in_pieces(data, largest)
        if stated > largest:
            raise DecompressionError(_too_large(largest))
        return zstandard.ZstdDecompressor().decompress(data)
    except (zstandard.ZstdError, MemoryError) as error:
        raise DecompressionError(str(error) or "out of memory") from None


def _in_pieces(data: bytes, largest: int) -> bytes:
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    content = bytearray()
    for start in range(0, len(data), _PIECE):
        content += decompressor.decompress(data[start : start + _PIECE])
        if len(content) > largest:
            raise DecompressionError(_too_large(largest))
        if decompressor.eof:
            return bytes(content)
    raise DecompressionError("ends too early")


def _too_large(largest: int) -> str:
    return f"becomes more than {largest >> 20} MiB when decompressed, which is the limit"
