"""Watching the files of a suite while it runs, and reporting what its tests left there."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from conformance.app.notes import print_note
from conformance.report.text import join_names
from conformance.suites.catalogue.checkouts import Checkouts
from conformance.suites.running.traces import listing, traces

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.app.context import ProjectContext
    from conformance.suites.running.traces import Traces
    from conformance.suites.suite import Suite


@contextmanager
def looked_after(suite: Suite, context: ProjectContext) -> Iterator[None]:
    """Keep a suite's files while it is used, and tell what its tests leave among them.

    Those in the cache are then made what they were; a user's own are left as they are.

    Args:
        suite: The suite.
        context: The project.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    checkouts = Checkouts(context.cache, print_note)
    held = nullcontext() if suite.checkout is None else checkouts.held(suite.checkout)
    before = listing(suite)
    try:
        with held:
            yield
    finally:
        if left := traces(before, listing(suite)):
            said = f"its folder is not as it was before the run: {_words(left, suite)}"
            print_note(f"{suite.name}: {said}{_undone(suite, checkouts)}")


def _undone(suite: Suite, checkouts: Checkouts) -> str:
    """Undo it where that is ours to do, and return what is told of it."""
    if suite.checkout is None or suite.checkout.own:
        return ""
    tidy = checkouts.tidy(suite.checkout)
    return "; that is undone" if tidy else "; the next run undoes that"


def _words(left: Traces, suite: Suite) -> str:
    parts = (("added", left.added), ("changed", left.changed), ("removed", left.removed))
    return ", ".join(
        f"{how} {join_names([os.path.relpath(path, suite.root) for path in paths])}"
        for how, paths in parts if paths
    )  # fmt: skip
