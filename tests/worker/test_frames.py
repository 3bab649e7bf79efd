"""The wire: frames round trip in pieces of any size, and garbage is an error."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.worker import frames
from conformance.worker.frames import (
    LENGTH,
    MAX_HEADER,
    Decoder,
    Frame,
    FrameError,
    FrameTooLargeError,
    encode,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
headers = st.dictionaries(st.text().filter(lambda name: name != "body"), json_values, max_size=4)
messages = st.lists(st.tuples(headers, st.binary(max_size=200)), max_size=5)


@given(messages, st.lists(st.integers(1, 40), min_size=1))
def test_frames_round_trip(sent: list[tuple[dict[str, object], bytes]], pieces: list[int]) -> None:
    """The stream may be cut into pieces of any sizes."""
    stream = b"".join(encode(header, body) for header, body in sent)
    decoder, got = Decoder(), []
    for step in pieces * (len(stream) + 1):
        if not stream:
            break
        got += decoder.feed(stream[:step])
        stream = stream[step:]
    assert got == [Frame({**header, "body": len(body)}, body) for header, body in sent]


def test_an_incomplete_frame_is_not_returned() -> None:
    """The last byte completes it."""
    data = encode({"a": 1}, b"xyz")
    decoder = Decoder()
    assert decoder.feed(data[:-1]) == []
    assert decoder.feed(data[-1:]) == [Frame({"a": 1, "body": 3}, b"xyz")]


@pytest.mark.parametrize(
    "header",
    [
        b"not json",
        b"\xff\xfe",
        b"[]",
        b"3",
        b"{}",
        b'{"body": "3"}',
        b'{"body": null}',
        b'{"body": 1.5}',
        b'{"body": -9}',
    ],
)
def test_a_malformed_header_is_refused(header: bytes) -> None:
    """Something else wrote to the channel."""
    with pytest.raises(FrameError, match=r"expected|no JSON object"):
        Decoder().feed(LENGTH.pack(len(header)) + header)


def test_a_header_too_long_is_refused_at_once() -> None:
    """Before its bytes have arrived."""
    with pytest.raises(FrameError, match=f"expected at most {MAX_HEADER}"):
        Decoder().feed(LENGTH.pack(MAX_HEADER + 1))


@given(st.binary(max_size=64))
def test_garbage_is_an_error_or_waits_for_more(data: bytes) -> None:
    """No other exception is raised for any input."""
    try:
        Decoder().feed(data)
    except FrameError as error:
        assert str(error)  # noqa: PT017 - both ways are right


def test_a_frame_larger_than_the_pipe_is_written_whole() -> None:
    """`write` continues until everything is written."""
    body = os.urandom(300_000)
    read_end, write_end = os.pipe()
    if (child := os.fork()) == 0:
        frames.write(write_end, {"kind": "big"}, body)
        os._exit(0)
    os.close(write_end)
    decoder, got = Decoder(), []
    while data := os.read(read_end, 1 << 16):
        got += decoder.feed(data)
    os.close(read_end)
    assert os.waitpid(child, 0)[1] == 0
    assert got == [Frame({"kind": "big", "body": len(body)}, body)]


def test_a_lone_surrogate_is_escaped() -> None:
    """JSON can hold it, UTF-8 cannot."""
    odd = {"error": {"message": "no such file: \udcff.txt", "\ud800": ["\udfff", "\U0001f600é", 3]}}
    (frame,) = Decoder().feed(encode(odd))
    assert frame.header["error"] == {
        "message": "no such file: \\udcff.txt", "\\ud800": ["\\udfff", "\U0001f600é", 3],
    }  # fmt: skip


def test_a_body_that_is_too_large_is_refused_before_it_arrives() -> None:
    """By its header alone; the limit may change from frame to frame."""
    decoder = Decoder(largest=4)
    assert len(decoder.feed(encode({}, b"1234"))) == 1
    decoder.largest = 3
    whole = encode({}, b"1234")
    with pytest.raises(FrameTooLargeError, match="frame body of 4 bytes, expected at most 3"):
        decoder.feed(whole[:-4])
