"""The culprits of failing libraries: the release of jax, or the package, by a search for each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from conformance.app.ecosystem.records import open_results
from conformance.app.ecosystem.run import load_ecosystem
from conformance.app.ecosystem.sources import LibrarySources
from conformance.app.search.bisect import find_change
from conformance.app.search.blame import find_package
from conformance.app.search.options import SearchOptions
from conformance.app.suites.target import SuiteOptions
from conformance.app.target import find_target
from conformance.ecosystem.comparison import compare_failure
from conformance.errors import ConformanceError
from conformance.suites.catalogue.standards import CLAIMED
from conformance.suites.suite import Examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.app.context import ProjectContext
    from conformance.ecosystem.comparison import FailureComparison
    from conformance.ecosystem.outcome import LibraryRecord


def find_comparisons(context: ProjectContext, names: Sequence[str]) -> Iterator[FailureComparison]:
    """Yield the failures of libraries whose culprits can be searched for.

    Args:
        context: The project.
        names: Names of libraries, none for all.

    Raises:
        UsageError: If a definition or a record is wrong, or no library has a name.
        InfrastructureError: If the disk refuses.
    """
    records = [*open_results(context).load().values()]
    sources = LibrarySources(context.cache)
    for library in load_ecosystem(context, names):
        own = [
            one for one in records if one.library == library.name and one.definition == library.hash
        ]
        for record in own:
            if record.outcome.is_failure and not record.culprit:
                program = str(sources.write_program(library))
                found = compare_failure(record, own, library, program)
                if found is not None:
                    yield found


def find_culprits(
    context: ProjectContext, names: Sequence[str], say: Callable[[str], None]
) -> Iterator[LibraryRecord]:
    """Search for the culprit of each failure without one, record it, and yield the record.

    Args:
        context: The project.
        names: Names of libraries, none for all.
        say: Called with the command and the steps of each search.

    Raises:
        UsageError: If a definition or a record is wrong, or no library has a name.
        InfrastructureError: If the disk refuses.
    """
    results = open_results(context)
    for comparison in [*find_comparisons(context, names)]:
        say(comparison.command)
        try:
            culprit = _search(context, comparison, say)
        except ConformanceError as error:
            say(f"no culprit found: {error}")
            continue
        record = msgspec.structs.replace(
            comparison.bad, culprit=culprit, tested=datetime.now(tz=UTC).date().isoformat()
        )
        results.append(record)
        yield record
    results.sort()


def _search(
    context: ProjectContext, comparison: FailureComparison, say: Callable[[str], None]
) -> str:
    """Return the culprit of a failure in words.

    Raises:
        ConformanceError: If the search finds none.
    """
    good, bad = comparison.ends
    options = SearchOptions(
        good=good, bad=bad, wanted=comparison.wanted, is_command=comparison.is_import
    )
    suite = SuiteOptions(path=None, examples=Examples(), standard=CLAIMED)
    target = find_target(context, comparison.target, options, suite)
    if comparison.is_bisection:
        answer = find_change(context, target, options, say).answer
        last, first = (answer.labels[n] for n in (answer.last_good, answer.first_bad))
        return f"fails since jax {first}, works on {last}"
    moves = find_package(context, target, options, say).culprits
    return f"fails because of {', '.join(map(str, moves))}" if moves else "no single package"
