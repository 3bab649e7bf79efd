"""Stored tracebacks: encoded, decoded, and refused if malformed."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.model.traceback import (
    RaisedException,
    TracebackFrame,
    decode_traceback,
    encode_described_traceback,
    encode_traceback,
)


def test_a_traceback_round_trips() -> None:
    """Every field of it."""
    frame = TracebackFrame(
        file="/a.py", line=3, function="f", source="1 / 0", library="jax", count=2
    )
    chain = (
        RaisedException(
            type="E", message="m", notes=("n",), frames=(frame, TracebackFrame(count=7))
        ),
        RaisedException(type="K", relation="cause"),
    )
    assert decode_traceback(encode_traceback(chain)) == chain


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", b"[{}]", b'[{"type":1}]', b'[{"type":"E","relation":"uncle"}]', b"\xff",
        b"[" * 100_000, b'[{"type":"E","frames":[{"count":0}]}]',
        b'[{"type":"E","message":"' + b"x" * 20_000 + b'"}]',
        b'[{"type":"E","frames":[' + b",".join([b"{}"] * 2_000) + b"]}]",
    ],
)  # fmt: skip
def test_other_json_is_no_traceback(data: bytes) -> None:
    """A shard may contain anything."""
    with pytest.raises(ValueError, match=r"."):
        decode_traceback(data)


@pytest.mark.parametrize("told", [None, {}, [{"type": 3}], [{"frames": []}], "text"])
def test_reported_tracebacks_are_checked(told: Any) -> None:
    """A job can write to its worker's channel."""
    with pytest.raises(ValueError, match=r"."):
        encode_described_traceback(told)
