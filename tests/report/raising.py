"""Tracebacks made by hand, for jobs that raised."""

from __future__ import annotations

from typing import Any

from conformance.model.traceback import RaisedException, TracebackFrame, encode_traceback


def own(line: int = 7, **more: Any) -> TracebackFrame:
    """Return a frame of the user's own code."""
    said = {"file": "/home/me/project/cases/f/t.py", "function": "step", "source": "return g(x)"}
    return TracebackFrame(line=line, **{**said, **more})


def library(name: str = "jax", line: int = 1, **more: Any) -> TracebackFrame:
    """Return a frame of a library."""
    said = {"file": f"{name}/_src/core.py", "function": "bind", "source": "raise TypeError(m)"}
    return TracebackFrame(line=line, library=name, **{**said, **more})


CHAIN = (
    RaisedException(
        type="TypeError", message="bad shape\nsecond line",
        frames=(own(7), library(), library("numpy"), own(9), library(), library(line=4)),
    ),
    RaisedException(type="KeyError", message="'x'", relation="cause", frames=(own(3),)),
)  # fmt: skip
FRAMES: dict[str, str] = {"frames": encode_traceback(CHAIN).decode()}
"""The artifact of a job that raised so."""
RAISED: dict[str, Any] = {"error": ("TypeError", "bad shape"), "texts": FRAMES}
"""How such a job ends, for `Directory.job`."""
LINES = (
    "traceback (most recent call last):",
    "  cases/f/t.py:7 in step",
    "      return g(x)",
    "  ... 2 frames in jax and numpy ...",
    "  cases/f/t.py:9 in step",
    "      return g(x)",
    "  ... 1 frame in jax ...",
    "  jax/_src/core.py:4 in bind",
    "      raise TypeError(m)",
    "TypeError: bad shape ...",
    "caused by KeyError: 'x'",
    "  cases/f/t.py:3 in step",
    "      return g(x)",
)
"""What is shown of it."""
