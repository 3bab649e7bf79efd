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
            # A character that the terminal lacks is escaped instead of raising an error.
            errors="backslashreplace",
            line_buffering=stream.line_buffering,
            # Passed on at once: output files write their bytes to the same buffer.
            write_through=True,
        )
        self._masker = Masker(os.environ)

    def write(self, text: str) -> int:
        """Write a text, masked and escaped; return the number of characters given."""
        super().write(escape_marks(self._masker.mask_text(text)))
        # The number of given characters, as callers check it; masking changes the length.
        return len(text)


@contextlib.contextmanager
def guard_output() -> Iterator[None]:
    """Guard standard output and standard error until the block ends."""
    guarded = {
        name: stream
        for name in ("stdout", "stderr")
        # Under pytest or in a notebook the streams are replaced, and have no buffer to wrap.
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper)
    }
    for name, stream in guarded.items():
        # Text in the old stream would come after text that the guard writes.
        stream.flush()
        setattr(sys, name, GuardedStream(stream))
    try:
        yield
    finally:
        for name, stream in guarded.items():
            guard = getattr(sys, name)
            setattr(sys, name, stream)
            # The reader of a pipe may have gone, e.g. `head`.
            with contextlib.suppress(OSError, ValueError):
                guard.flush()
            with contextlib.suppress(ValueError):
                # Otherwise the end of the guard closes the buffer of the stream.
                guard.detach()
