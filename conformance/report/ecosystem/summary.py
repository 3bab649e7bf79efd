"""The outcomes of libraries as reports show them: by library, release and policy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.ecosystem.outcome import Key, LibraryOutcome, VersionPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.ecosystem.causes import EcosystemCause
    from conformance.ecosystem.library import Library
    from conformance.ecosystem.outcome import LibraryRecord

SIGNS: Final = {
    LibraryOutcome.OK: "ok",
    LibraryOutcome.TESTS_FAIL: "fails",
    LibraryOutcome.IMPORT_FAILS: "no import",
    LibraryOutcome.NOT_INSTALLABLE: "not installable",
    LibraryOutcome.NO_VERSION: "-",
    LibraryOutcome.UNKNOWN: "?",
}
"""A word for each outcome in a table."""
POLICIES: Final = {
    VersionPolicy.RELEASE: "versions of the release date",
    VersionPolicy.BOUNDS: "versions that requirements admit today",
    VersionPolicy.NEWEST: "newest versions of today",
}
"""Titles of the policies."""


# No slots: `cached_property` stores its values in the instance.
@dataclass(frozen=True, kw_only=True)
class EcosystemSummary:
    """Outcomes of libraries on releases.

    Attributes:
        libraries: The libraries, by name.
        records: Their records, of present definitions.
        causes: What failures have in common.
    """

    libraries: Mapping[str, Library]
    records: Sequence[LibraryRecord]
    causes: tuple[EcosystemCause, ...]

    @cached_property
    def releases(self) -> tuple[str, ...]:
        """Releases with an outcome, ascending."""
        return tuple(sorted({record.jax for record in self.records}, key=Version))

    @cached_property
    def policies(self) -> tuple[VersionPolicy, ...]:
        """Policies with an outcome."""
        found = {record.policy for record in self.records}
        return tuple(policy for policy in VersionPolicy if policy in found)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Libraries with an outcome, by name."""
        return tuple(sorted({record.library for record in self.records}))

    @cached_property
    def _by_key(self) -> Mapping[Key, LibraryRecord]:
        return {record.key: record for record in self.records}

    def get(self, library: str, release: str, policy: VersionPolicy) -> LibraryRecord | None:
        """Return the record of a library on a release, None if it was not tested."""
        return self._by_key.get(Key(library, release, policy))

    def find_newest(self, library: str) -> LibraryRecord | None:
        """Return the record of a library on the newest release, None if it was not tested there.

        Of several policies the first counts.
        """
        found = (self.get(library, self.releases[-1], policy) for policy in VersionPolicy)
        return next((record for record in found if record is not None), None)

    def count(self, policy: VersionPolicy) -> Counter[LibraryOutcome]:
        """Return the number of each outcome under a policy."""
        return Counter(record.outcome for record in self.records if record.policy is policy)

    @property
    def flaky(self) -> int:
        """Number of tests whose attempts disagree."""
        return sum(len(record.flaky) for record in self.records)

    @property
    def tests(self) -> int:
        """Number of tests that ran."""
        return sum(record.tests for record in self.records)


def describe_record(record: LibraryRecord | None) -> str:
    """Return the version and the outcome of a record for a cell of a table.

    Args:
        record: The record, None if the library was not tested.
    """
    if record is None:
        return ""
    if record.outcome is LibraryOutcome.TESTS_FAIL:
        sign = f"{len(record.failures)}/{record.tests} fail"
    else:
        sign = SIGNS[record.outcome]
    return f"{record.version} {sign}".strip()
