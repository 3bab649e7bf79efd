"""Changes between successive recorded spans of a case; pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from conformance.golden.layout import ENDING

if TYPE_CHECKING:
    from conformance.corpus.behaviour_changes import ShownBy
    from conformance.golden.document import Tracks
    from conformance.golden.spans import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanChange:
    """Two successive spans with different contents.

    Attributes:
        track: Name of the track, see `layout.get_track`.
        before: The older span.
        after: The newer span.
    """

    track: str
    before: Span[str]
    after: Span[str]

    @property
    def release(self) -> str:
        """The first release of the newer span."""
        return self.after.first

    @property
    def shown_by(self) -> ShownBy:
        """The part of the golden that changes at the release."""
        if self.track != ENDING:
            return self.track  # type: ignore[return-value] # every other track is a part of a golden
        raised = [span.content.startswith("error-") for span in (self.before, self.after)]
        if all(raised):
            return "error"
        return "outcome" if any(raised) else "value"


def find_span_changes(tracks: Tracks) -> tuple[SpanChange, ...]:
    """Return the changes of content, by track and release.

    Args:
        tracks: The spans of one case on one platform.
    """
    return tuple(
        SpanChange(track=track, before=before, after=after)
        for track, spans in tracks.items()
        for before, after in pairwise(spans)
        if before.content != after.content
    )
