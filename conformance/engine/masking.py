"""Masking the secrets of the orchestrator in what a worker reports of one job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from conformance.cells.secret_masking import Masker
    from conformance.worker.frames import Frame

NOTE: Final = "secrets of the environment are masked in its output"
"""Note on a job with a masked secret: its artifacts depend on the environment of the run."""
_WORDS: Final = frozenset(
    {
        *("artifact", "dtype", "ended", "id", "job", "kind", "same_as", "seconds", "stage"),
        *("begin", "node", "outcome", "phase", "test", "tests"),
    }
)
"""Keys of headers whose values the worker chooses from a few words, which may equal a secret, or
which name a test."""


@dataclass(slots=True)
class Masking:
    """Masks the frames of one job.

    Attributes:
        masker: Knows the secrets.
        found: Whether a frame contained one.
    """

    masker: Masker
    found: bool = False

    def frame(self, frame: Frame) -> tuple[dict[str, Any], bytes]:
        """Return the header and the body of a frame, masked.

        Args:
            frame: A frame of the worker. The bytes of a value keep their length, which its header
                states.
        """
        header: dict[str, Any] = self.masker.tree(frame.header, _WORDS)
        mask = self.masker.content if "artifact" in header else self.masker.data
        body = mask(frame.body)
        self.found |= header != frame.header or body != frame.body
        return header, body

    def notes(self) -> tuple[str, ...]:
        """Return a note if a secret was masked."""
        return (NOTE,) if self.found else ()
