"""Tracebacks as workers capture them: exceptions of a chain, with the owner of each frame."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

FRAMES: Final = "frames"
"""Name of the artifact."""
# Limits, because a job can forge any message: workers cut texts to 2,000 characters and frames to
# 80 themselves.
Text = Annotated[str, msgspec.Meta(max_length=10_000)]
Number = Annotated[int, msgspec.Meta(ge=0)]


class TracebackFrame(msgspec.Struct, frozen=True, kw_only=True):
    """A frame of a traceback.

    Attributes:
        file: Source file: absolute for the user's code, relative to its package for a library;
            empty for `count` omitted frames.
        line: Line in execution, from 1.
        function: Qualified name of the function.
        source: Text of the line, empty if unknown.
        library: Package of the file, `python` for the standard library; empty for the user's code.
        count: Number of consecutive equal frames, as in a recursion.
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
        type: Name of its class.
        message: Message.
        relation: Relation to the exception before it in the chain: its `cause`, its `context` (the
            exception that was being handled), or a `member` of its group; empty for the first.
        notes: Notes (PEP 678).
        frames: Frames, the outermost first.
    """

    type: Text
    message: Text = ""
    relation: Literal["", "cause", "context", "member"] = ""
    notes: tuple[Text, ...] = ()
    frames: Annotated[tuple[TracebackFrame, ...], msgspec.Meta(max_length=1_000)] = ()


Traceback = tuple[RaisedException, ...]
"""The exception that ended a job, followed by its causes, contexts and group members."""


def encode_traceback(traceback: Traceback) -> bytes:
    """Return a traceback as JSON."""
    return msgspec.json.encode(traceback)


def encode_described_traceback(described: Any) -> bytes:
    """Return the artifact `frames` of exceptions that a worker reports.

    Args:
        described: Plain data as `conformance.worker.tracebacks.describe_chain` returns them.

    Raises:
        ValueError: If the data do not describe a traceback.
    """
    return encode_traceback(msgspec.convert(described, Traceback))


def decode_traceback(data: bytes) -> Traceback:
    """Return the traceback that `encode_traceback` wrote.

    Args:
        data: JSON of the traceback.

    Raises:
        ValueError: If the JSON is malformed, or describes no traceback.
    """
    try:
        return msgspec.json.decode(data, type=Traceback)
    except RecursionError as error:  # deeply nested JSON, from a damaged or foreign run directory
        raise ValueError(str(error)) from None
