"""Conformance of releases to a suite by test and group: counts, regressions, fixes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

OTHER: Final = "other"
"""The group of tests that are in none."""


class SuiteOutcome(StrEnum):
    """The outcome of a test in a release."""

    PASSED = "passed"
    KNOWN = "known"
    """It fails as declared: a deviation."""
    FAILED = "failed"
    FLAKY = "flaky"
    """Attempts disagree: neither a pass nor a failure."""
    SKIPPED = "skipped"
    ABSENT = "absent"
    """It was not collected: the suite has no such test for that release."""

    @property
    def fails(self) -> bool:
        """Whether it is known to fail."""
        return self in {SuiteOutcome.KNOWN, SuiteOutcome.FAILED}


RAN: Final = (SuiteOutcome.PASSED, SuiteOutcome.KNOWN, SuiteOutcome.FAILED, SuiteOutcome.FLAKY)
"""Outcomes that count in a share of passes: a skipped test is neither for nor against a release."""


class SuiteResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of a test in a release.

    Attributes:
        outcome: Outcome of the test.
        why: Its error, or the reason of its skip; empty if it passed.
        reason: Declared reason of a known failure.
        issue: Upstream thread, as declared.
    """

    outcome: SuiteOutcome
    why: str = ""
    reason: str = ""
    issue: str = ""


ABSENT: Final = SuiteResult(outcome=SuiteOutcome.ABSENT)


class SuiteRelease(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A release that was held against a suite.

    Attributes:
        release: The release of jax.
        cell: Id of the cell.
        standard: Version of the standard, empty for suites without a standard.
        date: Day of the release, empty where that is not known.
        run: Id of the run.
    """

    release: str
    cell: str
    standard: str = ""
    date: str = ""
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackedTest:
    """A test, followed over releases.

    Attributes:
        group: Group of the test; for one of our own cases, its family.
        results: Results by release.
        doc: Docstring of one of our own cases.
    """

    group: str
    results: Mapping[str, SuiteResult]
    doc: str = ""

    def of(self, release: str) -> SuiteResult:
        """Return the result of the test in a release, `ABSENT` if it has none."""
        return self.results.get(release, ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The numbers of tests of a group by outcome.

    Attributes:
        of: Number of tests by outcome, without tests that were not collected.
    """

    of: Mapping[SuiteOutcome, int]

    @property
    def ran(self) -> int:
        """Number of tests that were not skipped."""
        return sum(self.of.get(outcome, 0) for outcome in RAN)

    @property
    def passed(self) -> int:
        """Number of tests that passed."""
        return self.of.get(SuiteOutcome.PASSED, 0)

    @property
    def known(self) -> int:
        """Number of tests that fail as declared."""
        return self.of.get(SuiteOutcome.KNOWN, 0)

    @property
    def unexpected(self) -> int:
        """Number of tests that fail undeclared, or only in some attempts."""
        return self.of.get(SuiteOutcome.FAILED, 0) + self.of.get(SuiteOutcome.FLAKY, 0)

    @property
    def skipped(self) -> int:
        """Number of tests that were skipped."""
        return self.of.get(SuiteOutcome.SKIPPED, 0)

    @property
    def share(self) -> float:
        """Share of the tests that passed, among those not skipped; 0 if all were skipped."""
        return self.passed / self.ran if self.ran else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseStep:
    """The changes of a release against the release before.

    Attributes:
        before: The release before, None for the first.
        after: The release.
        regressed: Tests that passed before, and fail.
        fixed: Tests that failed before, and pass.
        added: Tests that were not collected before. They are not fixes, even if they pass.
        removed: Tests that are no longer collected.
    """

    before: SuiteRelease | None
    after: SuiteRelease
    regressed: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def standards(self) -> tuple[str, str] | None:
        """Both versions of the standard, if this release claims another one."""
        pair = ("" if self.before is None else self.before.standard, self.after.standard)
        return pair if all(pair) and pair[0] != pair[1] else None


@dataclass(frozen=True)
class SuiteHistory:
    """The results of a suite on releases.

    Attributes:
        suite: Name of the suite.
        title: Title on pages; empty for the name.
        revision: Commit of the suite.
        settings: Further settings of the runs, as in `RunSuite`.
        place: Name of the track on which it ran, e.g. `cpu8`.
        releases: The releases, the oldest first.
        tests: The tests of the suite, by name.
        own_cases: Our own cases, by id, about behaviour that the suite does not test.
    """

    suite: str
    title: str = ""
    revision: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
    releases: tuple[SuiteRelease, ...] = ()
    tests: Mapping[str, TrackedTest] = field(default_factory=dict)
    own_cases: Mapping[str, TrackedTest] = field(default_factory=dict)

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups of the suite, by name; `OTHER` comes last."""
        return _sort_groups(self.tests.values())

    @cached_property
    def families(self) -> tuple[str, ...]:
        """The families of our own cases, by name."""
        return _sort_groups(self.own_cases.values())

    @property
    def newest(self) -> SuiteRelease | None:
        """The newest release."""
        return self.releases[-1] if self.releases else None

    def counts(self, release: str, group: str = "") -> Counts:
        """Return the numbers of tests by outcome in a release.

        Args:
            release: The release.
            group: A group, or a family of our own cases; empty for the whole suite.
        """
        return Counts(of=self._counts.get((release, group), Counter()))

    @cached_property
    def _counts(self) -> dict[tuple[str, str], Counter[SuiteOutcome]]:
        # Counted once for all groups: a page asks for every group in every release.
        found: dict[tuple[str, str], Counter[SuiteOutcome]] = {}
        for tests, whole in ((self.tests, True), (self.own_cases, False)):
            for tested in tests.values():
                for release, result in tested.results.items():
                    if result.outcome is SuiteOutcome.ABSENT:
                        continue
                    # Our own cases have families, but do not count in the whole of the suite.
                    for group in (tested.group, "") if whole else (tested.group,):
                        found.setdefault((release, group), Counter())[result.outcome] += 1
        return found

    def failing(self, release: str, group: str = "") -> dict[str, SuiteResult]:
        """Return the results of the tests that do not pass in a release, the gravest first.

        Args:
            release: The release.
            group: A group, or a family of our own cases; empty for the whole suite.
        """
        tests = self.own_cases if group in self.families else self.tests
        found = {
            name: tested.of(release)
            for name, tested in tests.items()
            if group in {"", tested.group}
        }
        worst = (SuiteOutcome.FAILED, SuiteOutcome.FLAKY, SuiteOutcome.KNOWN)
        return {
            name: result for of in worst for name, result in found.items() if result.outcome is of
        }

    @cached_property
    def steps(self) -> tuple[ReleaseStep, ...]:
        """The changes of each release in the tests of the suite, the oldest first."""
        return self._make_steps(self.tests)

    @cached_property
    def own_case_steps(self) -> tuple[ReleaseStep, ...]:
        """The changes of each release in our own cases, the oldest first."""
        return self._make_steps(self.own_cases)

    def _make_steps(self, tests: Mapping[str, TrackedTest]) -> tuple[ReleaseStep, ...]:
        # The first release has a step too, without changes: pages show a row for each step.
        before = (None, *self.releases)
        return tuple(
            _make_step(one, two, tests) for one, two in zip(before, self.releases, strict=False)
        )


def _sort_groups(tests: Iterable[TrackedTest]) -> tuple[str, ...]:
    return tuple(sorted({one.group for one in tests}, key=lambda name: (name == OTHER, name)))


def _make_step(
    before: SuiteRelease | None, after: SuiteRelease, tests: Mapping[str, TrackedTest]
) -> ReleaseStep:
    if before is None:
        return ReleaseStep(before=None, after=after)
    found: dict[str, list[str]] = {"regressed": [], "fixed": [], "added": [], "removed": []}
    for name, tested in tests.items():
        was, now = (tested.of(held.release).outcome for held in (before, after))
        if word := classify_change(was, now):
            found[word].append(name)
    return ReleaseStep(
        before=before, after=after, **{word: tuple(names) for word, names in found.items()}
    )


def classify_change(was: SuiteOutcome, now: SuiteOutcome) -> str:
    """Return the change of a test from one release to the next, empty for none.

    Only a test that was run in both regresses or is fixed. A flaky test is neither, because its
    next run may pass or fail by chance.

    Args:
        was: Outcome in the release before.
        now: Outcome in the release.
    """
    if was is SuiteOutcome.PASSED and now.fails:
        return "regressed"
    if was.fails and now is SuiteOutcome.PASSED:
        return "fixed"
    if (was is SuiteOutcome.ABSENT) is not (now is SuiteOutcome.ABSENT):
        return "added" if was is SuiteOutcome.ABSENT else "removed"
    return ""


def shorten_test(test: str) -> str:
    """Return the name of a test without the folders that its file is in.

    Args:
        test: Name of the test.
    """
    # Parameters may contain slashes, which separate no folders.
    function, sign, parameters = test.partition("[")
    return f"{function.rpartition('/')[2]}{sign}{parameters}"


def find_failure_cause(test: str, result: SuiteResult) -> tuple[str, ...]:
    """Return the key that groups failures: a declared reason, otherwise the function of the test.

    Args:
        test: Name of the test.
        result: Result of the test.
    """
    if result.reason:
        return result.reason, result.issue
    # Messages differ by parametrisation, so only the type of the error is part of the key.
    return test.partition("[")[0], result.why.partition(":")[0]
