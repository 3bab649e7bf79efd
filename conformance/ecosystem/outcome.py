"""The outcome of a library on a release, and the record of it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec


class VersionPolicy(StrEnum):
    """How the version of a library is chosen for a release of JAX."""

    RELEASE = "release"
    """The newest version on the release date, with the dependencies of that date."""
    BOUNDS = "bounds"
    """The newest version whose requirements admit the release, as a resolver chooses it today."""
    NEWEST = "newest"
    """The newest version of today, whatever its requirements."""


class LibraryOutcome(StrEnum):
    """The outcome of a library on a release, the best first."""

    OK = "ok"
    TESTS_FAIL = "tests fail"
    IMPORT_FAILS = "import fails"
    NOT_INSTALLABLE = "not installable"
    NO_VERSION = "no version"
    """It had no version on the release date."""
    UNKNOWN = "unknown"
    """The host or the package index failed: no outcome."""

    @property
    def is_failure(self) -> bool:
        """Whether the library can be installed and does not work."""
        return self in {LibraryOutcome.TESTS_FAIL, LibraryOutcome.IMPORT_FAILS}


IMPORT: Final = "import"
"""Name of the failure of an import."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An import or a test that fails.

    Attributes:
        test: Name of the test, `IMPORT` for the import of a module.
        error: Type and message of the error, without what differs between runs.
        where: Last frame of the traceback, `file:line`; empty if unknown.
    """

    test: str
    error: str
    where: str = ""


class Key(msgspec.Struct, frozen=True, order=True):
    """The subject of an outcome.

    Attributes:
        library: Name of the library.
        jax: Release of JAX.
        policy: VersionPolicy by which its version is chosen.
    """

    library: str
    jax: str
    policy: VersionPolicy


class LibraryRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a library on a release, a line of `ecosystem/results.jsonl`.

    Attributes:
        library: Name of the library.
        jax: Release of JAX.
        policy: VersionPolicy by which its version was chosen.
        version: Version of the library, empty if it has none.
        outcome: The outcome.
        definition: Hash of the library's definition.
        cell: Id of the cell, empty if the library has no version.
        reason: Requirement that forbids the installation, or why there is no outcome.
        tests: Number of tests that ran.
        failures: The import or the tests that fail.
        flaky: Tests whose attempts disagree; they do not count as failures.
        tested: Day of the test, ISO 8601.
        seconds: Duration of the test.
        culprit: The release or package that made it fail, as found by a search.
    """

    library: str
    jax: str
    policy: VersionPolicy
    version: str = ""
    outcome: LibraryOutcome
    definition: str = ""
    cell: str = ""
    reason: str = ""
    tests: int = 0
    failures: tuple[Failure, ...] = ()
    flaky: tuple[str, ...] = ()
    tested: str = ""
    seconds: float = 0.0
    culprit: str = ""

    @property
    def key(self) -> Key:
        """The subject of the outcome."""
        return Key(self.library, self.jax, self.policy)

    @property
    def summary(self) -> str:
        """The outcome in a few words, e.g. `2 of 12 tests fail`."""
        if self.outcome is LibraryOutcome.TESTS_FAIL:
            verb = "fails" if self.tests == 1 else "fail"
            return f"{len(self.failures)} of {self.tests} tests {verb}"
        return str(self.outcome)

    def is_current(self, version: str, definition: str) -> bool:
        """Return whether the record need not be made again.

        Args:
            version: Version that the policy chooses now.
            definition: Hash of the present definition.
        """
        same = (self.version, self.definition) == (version, definition)
        return same and self.outcome is not LibraryOutcome.UNKNOWN
