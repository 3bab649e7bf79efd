"""Updates the known failures of a suite from the results of runs. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from conformance.judge.conformance import is_expected
from conformance.model.case import Deviation, is_on
from conformance.model.ranges import in_range
from conformance.suites.catalogue.request import NODE
from conformance.suites.known.deviations import DeviationEntry, Deviations, sort_entries
from conformance.suites.known.error_patterns import make_pattern, make_reason
from conformance.suites.known.release_line import (
    is_between,
    list_points,
    make_ranges,
    parse_version,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.model.outcome import Outcome
    from conformance.model.record import ErrorInfo
    from conformance.suites.known.deviations import DeviationOrigin

Line = list[tuple[str, Deviation | None]]
"""Points of the line of releases, each with the known cause of a test's failure there."""


@dataclass(frozen=True, slots=True)
class TestFailure:
    """A failure of a test: its outcome, and its error."""

    __test__ = False  # keeps pytest from collecting it as a test class

    outcome: Outcome
    error: ErrorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResults:
    """The results of a whole run of a suite in one cell.

    Attributes:
        release: The cell's jax release.
        platform: The cell's platform.
        standard: The version of the standard that it was held against, empty for none.
        failures: Failures, by test; all other tests passed, or were skipped.
        unknown: Tests without a reliable result: flaky, or the host's fault.
        broken: Modules that could not be imported: their tests have no results.
    """

    release: str
    platform: str
    standard: str = ""
    failures: Mapping[str, TestFailure] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()


def update_deviations(
    known: Deviations, evidence: Sequence[CellResults], generated: DeviationOrigin
) -> Deviations:
    """Return known failures that agree with evidence; those that it does not contradict are kept.

    A release represents those up to the next release with a run, the oldest one also all before
    it. Known failures of releases without evidence are kept.

    Args:
        known: The known failures.
        evidence: Results of runs; of two about one release and platform the last counts.
        generated: The settings of the runs; their releases are added to the known ones.

    Returns:
        The known failures, in the order of the file.
    """
    latest = {(results.platform, results.release): results for results in evidence}
    releases = {name: dict(own) for name, own in known.generated.releases.items()}
    for results in latest.values():
        releases.setdefault(results.platform, {})[results.release] = results.standard
    own: dict[str, list[Deviation]] = {t: list(ds) for t, ds in known.group_by_test().items()}
    tests = {*own, *(test for results in latest.values() for test in results.failures)}
    by_release = sorted(latest.values(), key=lambda results: parse_version(results.release))
    causes = _Causes(known.entries)
    for test in sorted(tests):
        for platform in sorted(releases):
            new = [results for results in by_release if results.platform == platform]
            own[test] = _update_test(test, own.get(test, []), new, releases[platform], causes)
    generated = msgspec.structs.replace(generated, releases=releases)
    return Deviations(generated=generated, entries=_group_tests(own))


class _Causes:
    """The causes that entries declare: equal failures must share one, to share an entry."""

    def __init__(self, entries: Iterable[DeviationEntry]) -> None:
        self._known: dict[tuple[str, ...], Deviation] = {}
        for entry in entries:
            self._known.setdefault(
                _make_key(entry.deviation), replace(entry.deviation, releases="")
            )

    def find(self, failure: TestFailure, platform: str, own: Iterable[Deviation]) -> Deviation:
        """Return the cause of a failure: a known cause of its test, of other tests, or a new cause.

        Args:
            failure: Failure to explain.
            platform: Platform of the failure.
            own: Known causes of failures of its test.
        """
        # First the test's own: its pattern or reason may have been edited by hand.
        for cause in own:
            if is_shown(cause, failure) and _applies_to(platform, cause):
                return cause
        error = failure.error
        new = Deviation(
            outcome=failure.outcome.value, error=error.type, match=make_pattern(error.message),
            platform=platform, reason=make_reason(error.message, error.type),
        )  # fmt: skip
        return self._known.setdefault(_make_key(new), new)


def is_shown(cause: Deviation, failure: TestFailure) -> bool:
    """Say whether a cause declares a failure."""
    return failure.outcome == cause.outcome and is_expected(cause.error, cause.match, failure.error)


def _make_key(cause: Deviation) -> tuple[str, ...]:
    return cause.platform, cause.outcome, cause.error, cause.match


def _applies_to(platform: str, cause: Deviation) -> bool:
    return not cause.platform or is_on(platform, cause.platform)


def _update_test(
    test: str, own: list[Deviation], evidence: Iterable[CellResults],
    releases: Iterable[str], causes: _Causes,
) -> list[Deviation]:  # fmt: skip
    """Return the deviations of a test that agree with evidence on one platform."""
    for results in evidence:
        failure = results.failures.get(test)
        was_lost = failure is None and test.partition(NODE)[0] in results.broken
        # No result is no pass: a deviation must not be removed for it.
        if was_lost or test in results.unknown:
            continue
        declared = next((d for d in own if d.covers(results.release, results.platform, {})), None)
        if not _contradicts(declared, failure):
            continue
        platform = results.platform
        cause = failure and causes.find(failure, platform, [replace(d, releases="") for d in own])
        elsewhere = [d for d in own if not _applies_to(platform, d)]
        line = _make_line([d for d in own if _applies_to(platform, d)], releases)
        line = _set_cause(line, results.release, cause or None, releases)
        own = [*elsewhere, *_make_deviations(line, own)]
    return own


def _contradicts(declared: Deviation | None, failure: TestFailure | None) -> bool:
    """Say whether a result differs from the declared one."""
    if failure is None:
        return declared is not None and not declared.may_pass
    return declared is None or not is_shown(declared, failure)


def _make_line(own: Sequence[Deviation], releases: Iterable[str]) -> Line:
    line: Line = []
    for point in list_points((d.releases for d in own), releases):
        declared = next((d for d in own if in_range(point, d.releases)), None)
        line.append((point, declared and replace(declared, releases="")))
    return line


def _set_cause(line: Line, release: str, cause: Deviation | None, releases: Iterable[str]) -> Line:
    """Return a line on which a release, and those that it represents, have another cause."""
    new = parse_version(release)
    order = sorted(releases, key=parse_version)
    later = [other for other in order if parse_version(other) > new]
    # A change that was written by hand between two releases with runs is kept.
    by_hand = [
        point for (_, before), (point, after) in pairwise(line)
        if before != after and parse_version(point) > new
    ]  # fmt: skip
    high = min([*later, *by_hand], key=parse_version, default=None)
    # The oldest release also represents all before it, unless the line changes there.
    older = [known for point, known in line if parse_version(point) <= new]
    is_oldest = parse_version(order[0]) >= new and all(known == older[-1] for known in older)
    low = None if is_oldest else release
    return [(p, cause if is_between(p, low, high) else known) for p, known in line]


def _make_deviations(line: Line, own: Sequence[Deviation]) -> Iterator[Deviation]:
    """Yield the deviations on a line; a range that did not change keeps its spelling."""
    points = [point for point, _ in line]
    causes: list[Deviation] = []  # no set: the packages of a deviation make it unhashable
    for _, known in line:
        if known is not None and known not in causes:
            causes.append(known)
    for cause in causes:
        for text in make_ranges(points, [known == cause for _, known in line]):
            inside = [in_range(point, text) for point in points]
            spellings = (
                known.releases
                for known in own
                if replace(known, releases="") == cause
                and [in_range(point, known.releases) for point in points] == inside
            )
            # `>=0.5,<0.6` by hand and `>=0.5,<=0.5.3` by this module are equal: the file must not
            # change.
            yield replace(cause, releases=next(spellings, text))


def _group_tests(own: Mapping[str, Iterable[Deviation]]) -> tuple[DeviationEntry, ...]:
    """Return entries, each with all tests that have the same deviation."""
    found: dict[tuple[object, ...], tuple[Deviation, list[str]]] = {}
    for test, deviations in own.items():
        for d in deviations:
            key = (*_make_key(d), d.releases, d.reason, d.issue, d.may_pass)
            found.setdefault(key, (d, []))[1].append(test)
    return sort_entries(
        DeviationEntry(deviation=deviation, tests=tuple(sorted(tests)))
        for deviation, tests in found.values()
    )
