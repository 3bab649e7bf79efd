"""Contracts of the files in a run directory that are written after a run."""

from __future__ import annotations

from typing import Final

import msgspec

EVIDENCE: Final = "evidence.json"
"""Its name in a run directory."""
REPRODUCTIONS: Final = "repro"
"""Folder of the reproductions in a run directory."""


class Culprit(msgspec.Struct, frozen=True, kw_only=True):
    """A package that makes the difference.

    Attributes:
        package: Its name.
        before: Its version where all was well.
        after: Its version where it is not.
        files: Its files that are not as they were installed there.
    """

    package: str
    before: str
    after: str
    files: tuple[str, ...] = ()


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence about one root cause, from one representative job.

    Attributes:
        cause: Id of the root cause.
        case: The case that was looked into.
        cell: Id of the cell.
        good: Where it was known to be right: what the search began at, empty if nothing is.
        last_good: The last release, night or environment that was right.
        first_bad: The first that was not.
        asked: What the first one does that the last does not, in words.
        confirmed: Whether both showed the same once more.
        culprits: The packages that make the difference between these two.
        repro: Path of the reproduction, relative to the run directory; empty if there is none.
        command: The command that runs it.
        untold: What could not be found out, and why, one sentence each.
        unfinished: Whether that may be found out another time: the host stood in the way.
    """

    cause: str
    case: str
    cell: str
    good: str = ""
    last_good: str = ""
    first_bad: str = ""
    asked: str = ""
    confirmed: bool = False
    culprits: tuple[Culprit, ...] = ()
    repro: str = ""
    command: str = ""
    untold: tuple[str, ...] = ()
    unfinished: bool = False


SINCE: Final = "since.json"
"""Its name in a run directory."""


class JobAt(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A job by its place, which is the same for every night.

    Attributes:
        case: Case id.
        place: Where it runs: the id of its cell; of a nightly `nightly-cpu8` and the like.
    """

    case: str
    place: str


class CauseSince(msgspec.Struct, frozen=True, kw_only=True):
    """A root cause, and since when it has been there.

    Attributes:
        id: Id of the root cause.
        verdict: Verdict of its first job.
        reason: Why that is unexpected.
        jobs: Its jobs; of one that is gone or was not seen, those of the last night that showed it.
        run: Id of the first run that showed it.
        since: When that began, ISO 8601.
        nights: How many nights have shown it.
    """

    id: str
    verdict: str
    reason: str
    jobs: tuple[JobAt, ...]
    run: str
    since: str
    nights: int = 1


class ArtifactChange(msgspec.Struct, frozen=True, kw_only=True):
    """An artifact that changed since the last nightly run, and is expected in both.

    Attributes:
        artifact: `value`, or the IR that does other work: `jaxpr`, `stablehlo`, `hlo`.
        place: Where.
        cases: Ids of the cases.
    """

    artifact: str
    place: str
    cases: tuple[str, ...]


class PackageChange(msgspec.Struct, frozen=True, kw_only=True):
    """A package that is not the same as the last night.

    Attributes:
        place: Where.
        package: Its name.
        before: Its version the last night, empty if it was not there.
        after: Its version now, empty if it is not there.
    """

    place: str
    package: str
    before: str
    after: str


class Since(msgspec.Struct, frozen=True, kw_only=True):
    """The changes since the last nightly run.

    Attributes:
        run: Id of the last night's run.
        started: When that began, ISO 8601.
        new: Root causes that the last night did not show.
        still: Those that it did show.
        gone: Those that it showed, and that no job shows any more.
        unseen: Those that it showed, and whose jobs say nothing about JAX this time.
        added: Jobs that the last night did not have.
        removed: Jobs that only the last night had.
        silent: Jobs that said something about JAX the last night, and do not say anything now.
        moved: What is not as it was, although both are as they should be.
        installed: Packages that are not the same.
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
    moved: tuple[ArtifactChange, ...] = ()
    installed: tuple[PackageChange, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether anything did."""
        causes = (self.new, self.gone, self.unseen)
        jobs = (self.added, self.removed, self.silent, self.moved)
        return any((*causes, *jobs, self.installed))
