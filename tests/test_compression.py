"""Decompression is bounded: a few bytes do not become gigabytes."""

from __future__ import annotations

import pytest
import zstandard

from conformance.compression import DecompressionError, compress, decompress

TEXT = b"text" * 1000


def zeros(size: int, *, stated: bool = True) -> bytes:
    """Return the frame of many zeros, made a piece at a time."""
    piece = bytes(1 << 20)
    compressor = zstandard.ZstdCompressor().compressobj(size=size if stated else -1)
    made = [compressor.compress(piece) for _ in range(size >> 20)]
    made.append(compressor.compress(bytes(size & (1 << 20) - 1)))
    return b"".join(made) + compressor.flush()


def compress_without_size(data: bytes) -> bytes:
    """Return a frame as a pipe writes it: it does not say how large its content is."""
    compressor = zstandard.ZstdCompressor().compressobj()
    return compressor.compress(data) + compressor.flush()


@pytest.mark.parametrize("data", [b"", TEXT])
def test_compressed_data_round_trip(data: bytes) -> None:
    """Whether or not the frame states the size of its content."""
    assert decompress(compress(data)) == decompress(compress_without_size(data)) == data


@pytest.mark.parametrize("stated", [True, False])
def test_a_bomb_is_refused(*, stated: bool) -> None:
    """Also one that does not say how large it becomes."""
    with pytest.raises(DecompressionError, match="becomes more than 8 MiB when decompressed"):
        decompress(zeros((8 << 20) + 1, stated=stated), 8 << 20)
    assert len(decompress(zeros(8 << 20, stated=stated), 8 << 20)) == 8 << 20


@pytest.mark.parametrize(
    "data",
    [b"", b"no frame", compress(TEXT)[:-3], compress_without_size(TEXT)[:-3], compress(TEXT)[:5]],
)
def test_a_damaged_frame_is_an_error(data: bytes) -> None:
    """Cut ones too, of which nothing half is returned."""
    with pytest.raises(DecompressionError):
        decompress(data)
