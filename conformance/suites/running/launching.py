"""What sessions of a suite are started with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.suites.running.session import Launch
from conformance.suites.suite import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.suites.running.cells import Place
    from conformance.suites.running.collection import Collection
    from conformance.suites.suite import Suite


def arguments(collection: Collection) -> list[str]:
    """Return arguments of pytest with which every session is about the same project.

    Args:
        collection: What was collected, empty where that is not known yet.
    """
    known = ["--rootdir", collection.root] if collection.root else []
    known += ["-c", collection.ini] if collection.ini else []
    # One test that fails is no reason to know nothing of the others.
    return [*known, "--continue-on-collection-errors", "--maxfail=0"]


def launch(
    suite: Suite, place: Place, collection: Collection, paths: Iterable[str], *, forks: bool = True
) -> Launch:
    """Return what a session is started with.

    Args:
        suite: The suite.
        place: The cell's environment.
        collection: What was collected before, empty where that is not known yet.
        paths: What it collects.
        forks: Whether it forks workers, where that is safe.
    """
    return Launch(
        python=place.python,
        environment=place.variables,
        folder=suite.folder,
        arguments=[*suite.arguments, *arguments(collection), *paths],
        timeout=suite.timeout,
        memory=MEMORY,
        examples=suite.examples,
        facts=suite.facts,
        forks=forks,
        seed_random=suite.seed_random,
        # A pinned checkout is restored before each run: its files are those of its commit.
        data=not suite.is_in_cache,
    )
