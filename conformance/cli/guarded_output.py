"""Standard output and standard error without secrets, and without marks that reorder text."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from typing import TYPE_CHECKING

from conformance.cells.secret_masking import Masker
from conformance.report.text import escape_marks

if TYPE_CHECKING:
    from collections.abc import Iterator


class GuardedStream(io.TextIOWrapper):
    """A text stream that masks the secrets of this process and escapes marks that mislead readers.

    The last line of defence: text of a job is masked where it arrives and escaped where a table is
    made. Control codes stay, because terminals need them.

    Args:
        stream: The stream whose buffer it writes to.
    """

    def __init__(self, stream: io.TextIOWrapper) -> None:
        super().__init__(
            stream.buffer,
            encoding=stream.encoding,
            errors="backslashreplace",  # a terminal need not know every character
            line_buffering=stream.line_buffering,
            write_through=True,
        )
        self._masker = Masker(os.environ)

    def write(self, text: str) -> int:
        """Write a text, masked and escaped; return the number of characters given."""
        super().write(escape_marks(self._masker.mask_text(text)))
        return len(text)


@contextlib.contextmanager
def guard_output() -> Iterator[None]:
    """Guard standard output and standard error until the block ends."""
    guarded = {
        name: stream
        for name in ("stdout", "stderr")
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper)
    }
    for name, stream in guarded.items():
        stream.flush()
        setattr(sys, name, GuardedStream(stream))
    try:
        yield
    finally:
        for name, stream in guarded.items():
            guard = getattr(sys, name)
            setattr(sys, name, stream)
            with contextlib.suppress(OSError, ValueError):  # the reader of a pipe has gone
                guard.flush()
            with contextlib.suppress(ValueError):
                guard.detach()  # otherwise its end closes the stream's buffer
