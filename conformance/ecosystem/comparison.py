"""The working release that a failure is compared with, to find its culprit. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from packaging.version import Version

from conformance.ecosystem.outcome import IMPORT, LibraryOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.ecosystem.library import Library
    from conformance.ecosystem.outcome import LibraryRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureComparison:
    """A failure, and a release on which the library works.

    Attributes:
        good: Record of the release on which it works.
        bad: Record of the failure.
        target: The import or the test that fails, as a target of a search.
        wanted: Packages that the search installs in addition.
    """

    good: LibraryRecord
    bad: LibraryRecord
    target: str
    wanted: tuple[str, ...]

    @property
    def is_bisection(self) -> bool:
        """Whether one version of the library works on one release and fails on the other.

        Otherwise the library has changed too, and the search is for the package.
        """
        return self.good.version == self.bad.version

    @property
    def is_import(self) -> bool:
        """Whether the target is a command line that imports the library."""
        return self.bad.failures[0].test == IMPORT

    @property
    def ends(self) -> tuple[str, str]:
        """The good and the bad end of the search."""
        if self.is_bisection:
            return self.good.jax, self.bad.jax
        return self.good.cell, self.bad.cell

    @property
    def command(self) -> str:
        """The command that searches for the culprit."""
        name = "bisect" if self.is_bisection else "blame"
        options = [word for text in self.wanted for word in ("--with", quote(text))]
        flag = ["--command"] if self.is_import else []
        good, bad = self.ends
        words = [name, *flag, quote(self.target), "--good", good, "--bad", bad, *options]
        return " ".join(["conformance", *words])


def is_new_failure(record: LibraryRecord, earlier: Iterable[LibraryRecord]) -> bool:
    """Return whether a library fails that did not fail before.

    A failure on a release without a record is known if the library fails on the newest older one.

    Args:
        record: The new record.
        earlier: Records of earlier runs.
    """
    if not record.outcome.is_failure:
        return False
    older = [
        one
        for one in earlier
        if (one.library, one.policy) == (record.library, record.policy)
        and Version(one.jax) <= Version(record.jax)
        and (one.outcome is LibraryOutcome.OK or one.outcome.is_failure)
    ]
    newest = max(older, key=lambda one: Version(one.jax), default=None)
    return newest is None or not newest.outcome.is_failure


def compare_failure(
    record: LibraryRecord, records: Iterable[LibraryRecord], library: Library, program: str
) -> FailureComparison | None:
    """Return the comparison of a failure with the nearest older release that works, if any.

    The same version of the library is preferred, because only jax differs then.

    Args:
        record: The failure.
        records: Records of the library.
        library: Its definition.
        program: File with the tests of ours, whose tests can be searched for.
    """
    first = record.failures[0]
    is_own = first.test != IMPORT and _name_module(first.test) != program.rpartition("/")[2]
    older = [
        one
        for one in records
        if one.outcome is LibraryOutcome.OK and Version(one.jax) < Version(record.jax)
    ]
    # A test of its own is another file in each version.
    if is_own or not older:
        return None
    good = max(older, key=lambda one: (one.version == record.version, Version(one.jax)))
    is_same = good.version == record.version
    wanted: tuple[str, ...] = (f"{library.name}=={record.version}",) if is_same else ()
    if first.test == IMPORT:
        target = f"python -c 'import {', '.join(library.imports)}'"
    else:
        _, sign, name = first.test.partition("::")  # none for a module that does not import
        target = f"{program}{sign}{name}"
        wanted += library.requires
    return FailureComparison(good=good, bad=record, target=target, wanted=wanted)


def _name_module(test: str) -> str:
    return test.partition("::")[0].rpartition("/")[2]
