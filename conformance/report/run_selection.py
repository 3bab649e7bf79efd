"""Selection of the runs that a report shows; all others are history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.report.history import order_runs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.engine.digests import Digest


def select_runs(digests: Iterable[Digest]) -> list[Digest]:
    """Return the runs to be shown: the newest, and of each matrix the newest that ran all of it.

    What was tried once with a few cases, and runs before the newest, are history.

    Args:
        digests: What is known of each run.

    Returns:
        Some of them, the oldest first.
    """
    ordered = order_runs(digests)
    newest = {digest.matrix: digest for digest in ordered if digest.matrix and not digest.part}
    chosen = [*newest.values(), *ordered[-1:]]
    return [digest for digest in ordered if any(digest is one for one in chosen)]
