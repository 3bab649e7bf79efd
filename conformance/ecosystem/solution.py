"""Sets of libraries that were tested together on a release, and the search for the newest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
from packaging.version import Version

from conformance.ecosystem.outcome import Failure, LibraryOutcome, LibraryRecord, Policy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Versions = tuple[tuple[str, str], ...]
"""Libraries with their versions, in the order of the names."""


class SetKey(msgspec.Struct, frozen=True, order=True):
    """What the outcome of a set is about.

    Attributes:
        jax: Release of JAX.
        deps: `era` or `latest`: the date of the other packages.
        versions: The libraries.
    """

    jax: str
    deps: str
    versions: Versions


class SetRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of libraries that were tested together, a line of `ecosystem/sets.jsonl`.

    Attributes:
        jax: Release of JAX.
        deps: `era` or `latest`: the date of the other packages.
        versions: Version of each library.
        definitions: Hash of the definition of each library.
        outcome: The outcome of all of them in one environment.
        python: Python of the environment.
        reason: Requirement that forbids the installation, or why there is no outcome.
        tests: Number of tests that ran.
        failures: The import or the tests that fail.
        packages: Version of each package of the environment, if all works.
        tested: Day of the test, ISO 8601.
    """

    jax: str
    deps: str
    versions: dict[str, str]
    definitions: dict[str, str]
    outcome: LibraryOutcome
    python: str
    reason: str = ""
    tests: int = 0
    failures: tuple[Failure, ...] = ()
    packages: dict[str, str] = {}
    tested: str = ""

    @property
    def key(self) -> SetKey:
        """What the outcome is about."""
        return SetKey(self.jax, self.deps, tuple(sorted(self.versions.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A set that may work: each library does alone.

    Attributes:
        jax: Release of JAX.
        deps: `era` or `latest`.
        versions: Version of each library.
    """

    jax: str
    deps: str
    versions: Mapping[str, str]

    @property
    def key(self) -> SetKey:
        """What its outcome is about."""
        return SetKey(self.jax, self.deps, tuple(sorted(self.versions.items())))


def list_candidates(
    records: Iterable[LibraryRecord], names: Sequence[str], releases: Sequence[str]
) -> Iterator[Candidate]:
    """Yield sets whose libraries all work alone, the newest first.

    For each release, the newest versions with the packages of today come first, then those of the
    release date with the packages of that date.

    Args:
        records: Outcomes of the libraries.
        names: Names of the libraries.
        releases: Releases of JAX, ascending.
    """
    versions: dict[tuple[str, str, str], list[str]] = {}
    for record in records:
        if record.outcome is LibraryOutcome.OK:
            deps = get_deps(record.policy)
            versions.setdefault((record.jax, deps, record.library), []).append(record.version)
    for release in reversed(releases):
        for deps in ("latest", "era"):
            found = {name: versions.get((release, deps, name)) for name in names}
            chosen = {name: max(ok, key=Version) for name, ok in found.items() if ok}
            if len(chosen) == len(found):
                yield Candidate(jax=release, deps=deps, versions=chosen)


def get_deps(policy: Policy) -> str:
    """Return the date of the other packages under a policy: `era` or `latest`."""
    return "era" if policy is Policy.RELEASE else "latest"


def find_admitted_failures(
    records: Iterable[LibraryRecord], versions: Mapping[str, str]
) -> Iterator[LibraryRecord]:
    """Yield the failures of versions that declared requirements admit with a release.

    Args:
        records: Outcomes of the libraries.
        versions: Version of each package that a resolver chooses, jax among them.
    """
    seen = set()
    for record in records:
        admitted = versions.get(record.library) == record.version
        if admitted and record.jax == versions.get("jax") and record.outcome.is_failure:
            if record.library not in seen:
                seen.add(record.library)
                yield record
