"""Sets of libraries that were tested together on a release, and the search for the newest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
from packaging.version import Version

from conformance.ecosystem.outcome import Failure, LibraryOutcome, VersionPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.ecosystem.outcome import LibraryRecord

ERA: Final = "era"
LATEST: Final = "latest"
DEPS: Final = (LATEST, ERA)
"""Dates of the other packages, in the order in which sets are tried."""
Versions = tuple[tuple[str, str], ...]
"""Libraries with their versions, in the order of the names."""


class SetKey(msgspec.Struct, frozen=True, order=True):
    """The subject of the outcome of a set.

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
        """The subject of the outcome."""
        return SetKey(self.jax, self.deps, tuple(sorted(self.versions.items())))


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSet:
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
        """The subject of its outcome."""
        return SetKey(self.jax, self.deps, tuple(sorted(self.versions.items())))


def list_candidates(
    records: Iterable[LibraryRecord], names: Sequence[str], releases: Sequence[str]
) -> Iterator[CandidateSet]:
    """Yield sets whose libraries all work alone, the newest first.

    For each release, the newest versions with the packages of today come first, then those of the
    release date with the packages of that date. A set is followed by those in which one library has
    its next older version.

    Args:
        records: Outcomes of the libraries.
        names: Names of the libraries.
        releases: Releases of JAX, ascending.
    """
    working: dict[tuple[str, str, str], set[Version]] = {}
    for record in records:
        if record.outcome is LibraryOutcome.OK:
            key = (record.jax, get_deps(record.policy), record.library)
            working.setdefault(key, set()).add(Version(record.version))
    for jax in reversed(releases):
        for deps in DEPS:
            found = {name: sorted(working.get((jax, deps, name), ())) for name in names}
            if not all(found.values()):
                continue
            newest = {name: str(versions[-1]) for name, versions in found.items()}
            yield CandidateSet(jax=jax, deps=deps, versions=newest)
            for name, versions in found.items():
                for version in versions[-2:-1]:
                    older = {**newest, name: str(version)}
                    yield CandidateSet(jax=jax, deps=deps, versions=older)


def get_deps(policy: VersionPolicy) -> str:
    """Return the date of the other packages under a policy: `era` or `latest`."""
    return ERA if policy is VersionPolicy.RELEASE else LATEST


def render_constraints(record: SetRecord) -> str:
    """Return a constraints file with every package of a set's environment.

    Args:
        record: A set that works.
    """
    head = f"# tested together on {record.tested}, python {record.python}: {describe_set(record)}"
    pins = "".join(f"{name}=={version}\n" for name, version in sorted(record.packages.items()))
    return f"{head}\n{pins}"


def render_group(record: SetRecord, name: str = "jax") -> str:
    """Return a dependency group for `pyproject.toml`, which `uv sync --group` installs.

    Args:
        record: A set that works.
        name: Name of the group.
    """
    pins = "".join(f'  "{one}=={version}",\n' for one, version in sorted(record.packages.items()))
    return f"# {describe_set(record)}\n[dependency-groups]\n{name} = [\n{pins}]\n"


def describe_set(record: SetRecord | CandidateSet) -> str:
    """Return the release and the versions of a set, e.g. `jax 0.8.1, flax 0.12.0`."""
    versions = (f"{name} {version}" for name, version in sorted(record.versions.items()))
    return ", ".join([f"jax {record.jax}", *versions])
