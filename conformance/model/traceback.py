"""A traceback as a worker captured it: the exceptions of a chain, and whose code each frame is."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

FRAMES: Final = "frames"
"""Artifact that holds it."""
Text = Annotated[str, msgspec.Meta(max_length=10_000)]
Number = Annotated[int, msgspec.Meta(ge=0)]


class TracebackFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A line that was being executed.

    Attributes:
        file: Its file: absolute for the user's own, below its package for others; empty for
            `count` frames that were left out.
        line: The line, from 1.
        function: The function.
        source: The text of the line, empty where it is not known.
        library: The package that it is part of, `python` for the standard library; empty for the
            user's own code.
        count: How often it follows itself, as in a recursion.
    """

    file: Text = ""
    line: Number = 0
    function: Text = ""
    source: Text = ""
    library: Text = ""
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


class RaisedException(msgspec.Struct, frozen=True, kw_only=True):
    """An exception of a chain.

    Attributes:
        type: Its type.
        message: Its message.
        relation: How it is related to the exception before it in the chain: it is its `cause`, its
            `context` (it was being handled), or a `member` of its group; empty for the first.
        notes: Its notes (PEP 678).
        frames: Its frames, the outermost first.
    """

    type: Text
    message: Text = ""
    relation: Literal["", "cause", "context", "member"] = ""
    notes: tuple[Text, ...] = ()
    frames: Annotated[tuple[TracebackFrame, ...], msgspec.Meta(max_length=1_000)] = ()


Traceback = tuple[RaisedException, ...]
"""The exception that ended a job, then those that it came from."""


def encode_traceback(traceback: Traceback) -> bytes:
    """Return a traceback as JSON."""
    return msgspec.json.encode(traceback)


def encode_described_traceback(described: Any) -> bytes:
    """Return the exceptions that a worker reports as the artifact `frames`, once checked.

    Args:
        described: As `conformance.worker.tracebacks.describe_chain` returns it.

    Raises:
        ValueError: If it is no traceback.
    """
    return encode_traceback(msgspec.convert(described, Traceback))


def decode_traceback(data: bytes) -> Traceback:
    """Return the traceback that `encode_traceback` wrote.

    Args:
        data: Its JSON.

    Raises:
        ValueError: If it is none.
    """
    try:
        return msgspec.json.decode(data, type=Traceback)
    except RecursionError as error:
        raise ValueError(str(error)) from None
