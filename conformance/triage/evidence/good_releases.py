"""Releases and nightlies at which a job may have been right, the likeliest first. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from packaging.version import Version

from conformance.cells.nightly import stable_cell_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.engine.digests import Digest

_STEPS: Final = (0, 1, 3, 7, 15, 31)
"""How many releases are skipped, from the newest older one on."""


def candidates(release: str, known: Sequence[str], *, same: bool, seen: str = "") -> list[str]:
    """Return where a job may have been right.

    Args:
        release: Version of jax where it is not.
        known: Known releases, oldest first.
        same: Whether that release may be right itself: where it is not, its code was changed.
        seen: The last night that was right, empty if none is known.

    Returns:
        That release, the last night, and older releases, further and further back.
    """
    here = Version(release)
    older = [text for text in reversed(known) if Version(text) < here]
    itself = [text for text in known if same and Version(text) == here]
    night = [seen] if seen and Version(seen) < here else []
    back = [older[step] for step in _STEPS if step < len(older)]
    return list(dict.fromkeys([*itself, *night, *back]))


def seen_right(digests: Iterable[Digest], case: str, place: str) -> str:
    """Return the release of jax with which the newest run saw a job as expected, empty for none.

    Args:
        digests: Runs, the newest first.
        case: The case.
        place: The name of its cell in every run.
    """
    return next((found for digest in digests for found in _right(digest, case, place)), "")


def _right(digest: Digest, case: str, place: str) -> Iterator[str]:
    if case not in digest.cases:
        return
    row = digest.table[digest.cases.index(case)]
    places = stable_cell_ids(digest.cells)
    for number in np.flatnonzero(row).tolist():
        state = digest.states[row[number] - 1]
        release = digest.releases[number]
        right = state.telling and not state.unexpected
        if right and release and places[digest.cells[number]] == place:
            yield release
