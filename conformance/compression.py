"""Compression with zstd, and decompression of untrusted data within a limit."""

from __future__ import annotations

from typing import Final

import zstandard

LARGEST: Final = 2**30
"""Bytes of an artifact, and of anything that is decompressed."""
_UNKNOWN: Final = 2**64 - 1
"""Content size of a frame that does not contain it."""
_PIECE: Final = 2048
"""Compressed bytes per step of decompression; they expand to at most 64 MiB."""


class DecompressionError(ValueError):
    """Bytes that are no complete zstd frame, or a frame with too large a content."""


def compress(data: bytes) -> bytes:
    """Return a zstd frame that states the size of its content."""
    return zstandard.compress(data, 3)


def decompress(data: bytes, largest: int = LARGEST) -> bytes:
    """Return the content of a zstd frame.

    Args:
        data: Bytes of the frame.
        largest: Bytes that the content may have.

    Raises:
        DecompressionError: If it is damaged or cut, or its content is larger.
    """
    try:
        # Checked before anything is decompressed: a small frame can expand to any size.
        stated = zstandard.get_frame_parameters(data).content_size
        if stated == _UNKNOWN:
            return _decompress_stepwise(data, largest)
        if stated > largest:
            raise DecompressionError(_describe_limit(largest))
        return zstandard.ZstdDecompressor().decompress(data)
    except (zstandard.ZstdError, MemoryError) as error:
        raise DecompressionError(str(error) or "out of memory") from None


def _decompress_stepwise(data: bytes, largest: int) -> bytes:
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    content = bytearray()
    for start in range(0, len(data), _PIECE):
        content += decompressor.decompress(data[start : start + _PIECE])
        if len(content) > largest:
            raise DecompressionError(_describe_limit(largest))
        if decompressor.eof:
            return bytes(content)
    raise DecompressionError("ends too early")


def _describe_limit(largest: int) -> str:
    return f"becomes more than {largest >> 20} MiB when decompressed, which is the limit"
