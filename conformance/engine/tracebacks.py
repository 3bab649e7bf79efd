"""Tracebacks as artifacts: what a worker captured, checked and without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.cells.masking import masked
from conformance.model.traceback import Raised, Traceback, encode_traceback

if TYPE_CHECKING:
    from collections.abc import Iterator

_BETWEEN: Final = "\n\x1e\n"
"""Set between texts that are masked together, which is cheaper; no text of a frame holds it."""


def traceback_artifact(described: Any) -> bytes:
    """Return what a worker captured of an exception as the artifact `frames`.

    Args:
        described: As `conformance.kit.tracebacks.frames_of` returns it.

    Raises:
        ValueError: If it is no traceback.
    """
    found = msgspec.convert(described, Traceback)
    texts = list(_texts(found))
    safe = iter(masked(_BETWEEN.join(texts)).split(_BETWEEN))
    return encode_traceback(tuple(_with_texts(raised, safe) for raised in found))


def _texts(traceback: Traceback) -> Iterator[str]:
    """Yield the texts that may hold a secret."""
    for raised in traceback:
        yield from (text.replace(_BETWEEN, "\n") for text in (raised.message, *raised.notes))
        for frame in raised.frames:
            yield from (text.replace(_BETWEEN, "\n") for text in (frame.file, frame.source))


def _with_texts(raised: Raised, texts: Iterator[str]) -> Raised:
    replace = msgspec.structs.replace
    return replace(
        raised,
        message=next(texts),
        notes=tuple(next(texts) for _ in raised.notes),
        frames=tuple(
            replace(frame, file=next(texts), source=next(texts)) for frame in raised.frames
        ),
    )
