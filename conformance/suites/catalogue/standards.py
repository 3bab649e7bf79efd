"""The versions of a standard that a suite can hold releases against."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.errors import UsageError
from conformance.wording import did_you_mean

if TYPE_CHECKING:
    from conformance.suites.catalogue.definition import NamedSuite

CLAIMED: Final = "claimed"
"""The version that a release says it keeps."""
ALL: Final = "all"
"""Every version from the oldest to that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standards:
    """Which versions of a standard there are, and which of them is asked for.

    Attributes:
        versions: Those that the suite knows, the oldest first.
        variable: Environment variable that tells the suite which.
        claim: Where a release says which it keeps, `module:attribute`.
        asked: A version, CLAIMED or ALL.
    """

    versions: tuple[str, ...]
    variable: str
    claim: str
    asked: str = CLAIMED

    def of(self, claimed: str) -> str:
        """Return the version that a cell is held against.

        Args:
            claimed: The version that its release claims, empty where it claims none: then the
                oldest is the one.
        """
        return self.asked if self.asked in self.versions else claimed or self.versions[0]

    def refusal(self, claimed: str) -> str:
        """Return why a cell is not held against the version that is asked for, empty if it is.

        Args:
            claimed: As for `of`.
        """
        if self.asked not in self.versions:
            return ""
        if not _is_newer(self.asked, claimed or self.versions[0]):
            return ""
        none = f"claims no version, which counts as {self.versions[0]}"
        says = f"claims {claimed}" if claimed else none
        return f"is not held against {self.asked} of the standard: its release {says}"

    def each(self) -> tuple[Standards, ...]:
        """Return those that are asked for one by one."""
        if self.asked != ALL:
            return (self,)
        return tuple(replace(self, asked=version) for version in self.versions)


def standards_of(suite: NamedSuite, asked: str) -> Standards | None:
    """Return the versions of its standard that a suite is held against, None if it has none.

    Args:
        suite: The suite.
        asked: A version, CLAIMED or ALL.

    Raises:
        UsageError: If the suite has none, or not that one.
    """
    given = suite.definition
    if not given.standards:
        if asked != CLAIMED:
            raise UsageError(f"--standard {asked}: {suite.name} is not about a standard")
        return None
    if asked not in {*given.standards, CLAIMED, ALL}:
        raise UsageError(
            f"--standard {asked}: {suite.name} knows no such version"
            f"{did_you_mean(asked, given.standards)}; "
            f"expected {CLAIMED}, {ALL} or one of {', '.join(given.standards)}"
        )
    return Standards(
        versions=given.standards, variable=given.standard, claim=given.claim, asked=asked
    )


def _is_newer(one: str, other: str) -> bool:
    try:
        return Version(one) > Version(other)
    except ValueError:
        return one > other
