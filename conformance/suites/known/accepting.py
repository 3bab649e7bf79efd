"""From what runs showed to the known failures that say so: pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from conformance.judge.conformance import is_expected
from conformance.model.case import Deviation, is_on
from conformance.model.ranges import in_range
from conformance.suites.catalogue.named import NODE
from conformance.suites.known.causes import pattern_of, reason_of
from conformance.suites.known.deviations import DeviationEntry, Deviations
from conformance.suites.known.deviations_text import ordered
from conformance.suites.known.release_line import is_between, points, ranges_of, version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.model.outcome import Outcome
    from conformance.model.record import ErrorInfo
    from conformance.suites.known.deviations import Generated

Line = list[tuple[str, Deviation | None]]
"""Points of the line of releases, each with the cause that a test is known to fail for there."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a test failed: its outcome, and its error."""

    outcome: Outcome
    error: ErrorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResults:
    """What a whole run of a suite showed in one cell.

    Attributes:
        release: The cell's jax release.
        platform: Its platform.
        standard: The version of the standard that it was held against, empty for none.
        failures: How tests failed, by name; all others passed, or were not run there on purpose.
        unknown: Tests of which the run says nothing for sure: flaky, or the host's fault.
        broken: Modules that could not be imported, of whose tests it says nothing then.
    """

    release: str
    platform: str
    standard: str = ""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    unknown: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()


def accepted(
    known: Deviations, evidence: Sequence[CellResults], generated: Generated
) -> Deviations:
    """Return known failures as evidence has them; what it does not contradict stays as it is.

    A release stands for those up to the next one that was seen, the oldest for all before it.
    Only the releases of the evidence are looked at: of the others what was known stays known.

    Args:
        known: What is known.
        evidence: What runs showed; of two about one release and platform the last counts.
        generated: What the runs were made of; releases are added to those that are known.

    Returns:
        The known failures, in the order of the file.
    """
    seen = {(one.platform, one.release): one for one in evidence}
    releases = {name: dict(own) for name, own in known.generated.releases.items()}
    for one in seen.values():
        releases.setdefault(one.platform, {})[one.release] = one.standard
    own: dict[str, list[Deviation]] = {t: list(ds) for t, ds in known.by_test().items()}
    tests = {*own, *(test for one in seen.values() for test in one.failures)}
    causes = _Causes(known.entries)
    for test in sorted(tests):
        for platform in sorted(releases):
            new = sorted(
                (one for (where, _), one in seen.items() if where == platform),
                key=lambda one: version(one.release),
            )
            own[test] = _of_test(test, own.get(test, []), new, releases[platform], causes)
    generated = replace(generated, releases=releases)
    return Deviations(generated=generated, entries=_grouped(own))


class _Causes:
    """The causes that entries declare, by what they are told by."""

    def __init__(self, entries: Iterable[DeviationEntry]) -> None:
        self._known: dict[tuple[str, ...], Deviation] = {}
        for entry in entries:
            self._known.setdefault(_key(entry.deviation), replace(entry.deviation, releases=""))

    def of(self, failure: Failure, platform: str, tried: Iterable[Deviation]) -> Deviation:
        """Return the cause of a failure: one that its test has already, or that others have.

        Args:
            failure: The failure.
            platform: Where it was seen.
            tried: Causes that its test is known to fail for.
        """
        for cause in tried:
            if shown(cause, failure) and _is_at(platform, cause):
                return cause
        error = failure.error
        made = Deviation(
            outcome=failure.outcome.value, error=error.type, match=pattern_of(error.message),
            platform=platform, reason=reason_of(error.message, error.type),
        )  # fmt: skip
        return self._known.setdefault(_key(made), made)


def shown(cause: Deviation, failure: Failure) -> bool:
    """Say whether a failure is one that a cause declares."""
    return failure.outcome == cause.outcome and is_expected(cause.error, cause.match, failure.error)


def _key(cause: Deviation) -> tuple[str, ...]:
    return cause.platform, cause.outcome, cause.error, cause.match


def _is_at(platform: str, cause: Deviation) -> bool:
    return not cause.platform or is_on(platform, cause.platform)


def _of_test(
    test: str, own: list[Deviation], evidence: Iterable[CellResults],
    releases: Iterable[str], causes: _Causes,
) -> list[Deviation]:  # fmt: skip
    """Return the deviations of a test as evidence on one platform has them."""
    for one in evidence:
        failure = one.failures.get(test)
        unseen = failure is None and test.partition(NODE)[0] in one.broken
        if unseen or test in one.unknown:
            continue
        here = next((d for d in own if d.covers(one.release, one.platform, {})), None)
        if not _contradicts(here, failure):
            continue
        cause = failure and causes.of(failure, one.platform, [replace(d, releases="") for d in own])
        elsewhere = [d for d in own if not _is_at(one.platform, d)]
        line = _line([d for d in own if _is_at(one.platform, d)], releases)
        changed = _changed(line, one.release, cause or None, releases)
        own = [*elsewhere, *_spelled(changed, own)]
    return own


def _contradicts(declared: Deviation | None, failure: Failure | None) -> bool:
    """Say whether what a test did is not what is declared."""
    if failure is None:
        return declared is not None and not declared.may_pass
    return declared is None or not shown(declared, failure)


def _line(own: Sequence[Deviation], releases: Iterable[str]) -> Line:
    found: Line = []
    for point in points((d.releases for d in own), releases):
        here = next((d for d in own if in_range(point, d.releases)), None)
        found.append((point, here and replace(here, releases="")))
    return found


def _changed(line: Line, release: str, cause: Deviation | None, releases: Iterable[str]) -> Line:
    """Return a line on which a release, and those that it stands for, have another cause."""
    order = sorted(releases, key=version)
    later = [one for one in order if version(one) > version(release)]
    # What is said by hand of releases that nobody saw stays said.
    said = [
        point for (_, before), (point, after) in pairwise(line)
        if before != after and version(point) > version(release)
    ]  # fmt: skip
    high = min([*later, *said], key=version, default=None)
    low = None if version(order[0]) >= version(release) and not _before(line, release) else release
    return [(p, cause if is_between(p, low, high) else known) for p, known in line]


def _before(line: Line, release: str) -> bool:
    """Say whether anything changes on a line up to a release: then the oldest is not all before."""
    older = [known for point, known in line if version(point) <= version(release)]
    return any(known != older[-1] for known in older)


def _spelled(line: Line, own: Sequence[Deviation]) -> Iterator[Deviation]:
    """Yield the deviations that a line stands for, each range as it was spelled before."""
    order = [point for point, _ in line]
    causes: list[Deviation] = []
    for _, known in line:
        if known is not None and known not in causes:
            causes.append(known)
    for cause in causes:
        for text in ranges_of(order, [known == cause for _, known in line]):
            yield replace(cause, releases=_as_before(text, cause, own, order))


def _as_before(text: str, cause: Deviation, own: Iterable[Deviation], order: Sequence[str]) -> str:
    held = [in_range(point, text) for point in order]
    for known in own:
        same = replace(known, releases="") == cause
        if same and [in_range(point, known.releases) for point in order] == held:
            return known.releases
    return text


def _grouped(own: Mapping[str, Iterable[Deviation]]) -> tuple[DeviationEntry, ...]:
    """Return entries, each of all tests that have the same deviation."""
    found: dict[tuple[object, ...], tuple[Deviation, list[str]]] = {}
    for test, deviations in own.items():
        for one in deviations:
            words = (*_key(one), one.releases, one.reason, one.issue, one.may_pass)
            found.setdefault(words, (one, []))[1].append(test)
    return ordered(
        DeviationEntry(deviation=one, tests=tuple(sorted(tests))) for one, tests in found.values()
    )
