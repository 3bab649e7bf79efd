"""The tail of a stream: its end, and how much there was before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformance.worker.job_process import Tail


@given(st.lists(st.binary(max_size=30)), st.integers(1, 40))
def test_a_tail_is_the_end_of_what_was_fed(pieces: list[bytes], limit: int) -> None:
    """However it comes in, at most `limit` bytes are kept, and all are counted."""
    tail = Tail(limit)
    for piece in pieces:
        tail.feed(piece)
    whole = b"".join(pieces)
    assert bytes(tail._kept) == whole[-limit:]
    assert tail.total == len(whole)


def test_a_short_stream_is_whole() -> None:
    """Without a count of dropped bytes."""
    tail = Tail(5)
    tail.feed(b"hello")
    assert tail.text() == "hello"


def test_a_long_stream_has_a_count_of_dropped_bytes() -> None:
    """Before its end; a torn character is replaced."""
    tail = Tail(4)
    tail.feed("abcdé!".encode())
    assert tail.text() == "[3 bytes dropped]\ndé!"
    tail.feed(b"xx")
    assert tail.text() == "[5 bytes dropped]\n\N{REPLACEMENT CHARACTER}!xx"
