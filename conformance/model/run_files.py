"""Contracts of the files in a run directory that are written after a run.

Keys that differ from their attributes are those of the first release that wrote the file.
"""

from __future__ import annotations

from typing import Final

import msgspec

EVIDENCE: Final = "evidence.json"
"""Name of the file with the results of triage."""
REPRODUCTIONS: Final = "repro"
"""Folder of the reproductions in a run directory."""


class Culprit(msgspec.Struct, frozen=True, kw_only=True):
    """A package that makes the difference.

    Attributes:
        package: Name of the package.
        before: Version at the good end.
        after: Version at the bad end.
        files: Installed files of the package that were edited at the bad end.
    """

    package: str
    before: str
    after: str
    files: tuple[str, ...] = ()


class CulpritCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit of a package that makes the difference.

    Attributes:
        package: Name of the package.
        hash: The whole hash.
        date: Date of the commit, `YYYY-MM-DD`.
        title: First line of its message.
        references: Issues and pull requests that its message names.
        url: Its address, empty if the repository has none.
    """

    package: str
    hash: str
    date: str
    title: str
    references: tuple[str, ...] = ()
    url: str = ""


class Evidence(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={"predicate": "asked", "unresolved": "untold"},
):
    """Evidence about one root cause, from one representative job.

    Attributes:
        cause: Id of the root cause.
        case: Case id of the representative job.
        cell: Cell id of the representative job.
        good: Good end of the search, empty if no cell or run is known to be good.
        last_good: The last good release, nightly or environment.
        first_bad: The first bad release, nightly or environment.
        predicate: Difference between them as a phrase, e.g. `ends with ValueError`.
        confirmed: Whether both gave the same result when they were tried again.
        culprits: Packages that make the difference between them.
        commits: The commit that makes the difference; several if one of them does, and the others
            cannot be tried.
        layer: The layer that makes the difference, with the reason; empty if not searched for.
        remarks: Lines about the culprits, e.g. the revisions of XLA between two releases.
        repro: Path of the reproduction, relative to the run directory; empty if there is none.
        command: Command that runs the reproduction.
        unresolved: Sentences about facts that could not be determined, each with the reason.
        unfinished: Whether another attempt may determine them: the host was the reason.
    """

    cause: str
    case: str
    cell: str
    good: str = ""
    last_good: str = ""
    first_bad: str = ""
    predicate: str = ""
    confirmed: bool = False
    culprits: tuple[Culprit, ...] = ()
    commits: tuple[CulpritCommit, ...] = ()
    layer: str = ""
    remarks: tuple[str, ...] = ()
    repro: str = ""
    command: str = ""
    unresolved: tuple[str, ...] = ()
    unfinished: bool = False


SINCE: Final = "since.json"
"""Name of the file with the changes since the last nightly run."""


class JobAt(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A job identified by its place, which is the same every night.

    Attributes:
        case: Case id.
        place: Cell id; for a nightly cell, its id without the date, e.g. `nightly-cpu8`.
    """

    case: str
    place: str


class CauseSince(msgspec.Struct, frozen=True, kw_only=True):
    """A root cause with its age.

    Attributes:
        id: Id of the root cause.
        verdict: Verdict of its first job.
        reason: Why that verdict is unexpected.
        jobs: Its jobs; for a cause that is gone or was not observed, those of the last night that
            showed it.
        run: Id of the first run that showed it.
        since: Start of that run, ISO 8601.
        nights: Number of nights that showed it.
    """

    id: str
    verdict: str
    reason: str
    jobs: tuple[JobAt, ...]
    run: str
    since: str
    nights: int = 1


class ArtifactChange(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact that changed since the last nightly run although both results are expected.

    Attributes:
        artifact: `value`, or an IR whose canonical form changed: `jaxpr`, `stablehlo`, `hlo`.
        place: Place of the jobs, see `JobAt`.
        cases: Ids of the cases.
    """

    artifact: str
    place: str
    cases: tuple[str, ...]


class PackageChange(msgspec.Struct, frozen=True, kw_only=True):
    """A package whose version changed since the last nightly run.

    Attributes:
        place: Place of the cell, see `JobAt`.
        package: Name of the package.
        before: Version in the last nightly run, empty if it was not installed.
        after: Version in this run, empty if it is not installed.
    """

    place: str
    package: str
    before: str
    after: str


class Since(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={"artifacts": "moved", "packages": "installed"},
):
    """The changes since the last nightly run.

    Attributes:
        run: Id of the last nightly run.
        started: Start of that run, ISO 8601.
        new: Root causes that only this run shows.
        still: Root causes that both runs show.
        gone: Root causes that only the last run shows, and whose jobs were all observed again.
        unseen: Root causes of the last run of which a job was not observed this time.
        added: Jobs that only this run has.
        removed: Jobs that only the last run had.
        silent: Jobs that were observed in the last run, but not in this one.
        artifacts: Artifacts that changed although both results are expected.
        packages: Packages whose version changed.
    """

    run: str
    started: str
    new: tuple[CauseSince, ...] = ()
    still: tuple[CauseSince, ...] = ()
    gone: tuple[CauseSince, ...] = ()
    unseen: tuple[CauseSince, ...] = ()
    added: tuple[JobAt, ...] = ()
    removed: tuple[JobAt, ...] = ()
    silent: tuple[JobAt, ...] = ()
    artifacts: tuple[ArtifactChange, ...] = ()
    packages: tuple[PackageChange, ...] = ()

    @property
    def has_changes(self) -> bool:
        """Whether the runs differ; root causes that both show are no difference."""
        causes = (self.new, self.gone, self.unseen)
        jobs = (self.added, self.removed, self.silent, self.artifacts)
        return any((*causes, *jobs, self.packages))
