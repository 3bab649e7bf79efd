"""Where what is recorded of a case changes from one release to the next; pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from conformance.golden.layout import ENDING

if TYPE_CHECKING:
    from conformance.golden.document import Tracks
    from conformance.golden.spans import Span
    from conformance.model.behaviour_change import ShownBy


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Two spans that follow each other.

    Attributes:
        track: What is recorded, see `layout.track_of`.
        before: The older span.
        after: The newer one.
    """

    track: str
    before: Span[str]
    after: Span[str]

    @property
    def release(self) -> str:
        """The first release with what is recorded since."""
        return self.after.first

    @property
    def shown_by(self) -> ShownBy:
        """The part of the golden that changes there."""
        if self.track != ENDING:
            return self.track  # type: ignore[return-value] # the tracks but one are of that kind
        raised = [span.content.startswith("error-") for span in (self.before, self.after)]
        if all(raised):
            return "error"
        return "outcome" if any(raised) else "value"


def turns(tracks: Tracks) -> tuple[Turn, ...]:
    """Return where what is recorded changes, by track and release.

    Args:
        tracks: What is recorded of one case on one platform.
    """
    return tuple(
        Turn(track=track, before=before, after=after)
        for track, spans in tracks.items()
        for before, after in pairwise(spans)
        if before.content != after.content
    )
