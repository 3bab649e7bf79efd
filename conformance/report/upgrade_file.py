"""The file of an upgrade: what `conformance upgrade --json` writes, and reports read back."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from conformance.errors import ConformanceError
from conformance.files import MALFORMED
from conformance.triage.upgrade.effect import Effect  # noqa: TC001 - msgspec reads the annotations

FORMAT: Final = 1
"""What is written now; what another number means is not known."""
ANEW: Final = "the same `conformance upgrade` writes it anew"


class CorruptUpgradeError(ConformanceError):
    """A file that does not tell of an upgrade, or not in a way that is known."""


class UpgradePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A place of an axis.

    Attributes:
        label: What it is called: its release, or what names an end.
        cell: Its cell's id.
    """

    label: str
    cell: str


class PlatformAxis(msgspec.Struct, frozen=True, kw_only=True):
    """The points between both ends on one platform, both included.

    Attributes:
        platform: The platform.
        points: The places, in order; both ends at least.
    """

    platform: str
    points: Annotated[tuple[UpgradePoint, ...], msgspec.Meta(min_length=2)]


class Package(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """A package, and its versions before and after."""

    package: str
    from_: str
    to: str


class Searched(msgspec.Struct, frozen=True, kw_only=True):
    """The packages that made a change, by trial.

    Attributes:
        case: Case that it was tried with.
        guilty: Sets of packages, each of which makes the change.
        beside: Packages without which those of the first set cannot be moved.
        untold: What could not be told, and why.
    """

    case: str
    guilty: tuple[tuple[Package, ...], ...] = ()
    beside: tuple[Package, ...] = ()
    untold: str = ""


class UpgradeChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a case on the way.

    Attributes:
        case: Case id.
        platform: Where.
        kind: What it does.
        artifact: What is shown of it: `ending`, `value`, a fact or a figure.
        last: The last release that was tried before it.
        changed_in: The first that was tried after it.
        cells: Ids of the cells that were compared.
        before: What it was, in a line.
        after: What it is.
        changed: What differs, by name.
        culprit: The package that made it, empty where more than one may have.
        suspects: Packages that may have made it, with both versions.
        beside: Those of them that are not packages of jax.
        searched: Which package it is by trial; None where that was not tried.
        upstream: Thread of the declared deviation.
        known: Why the failure of a test is known, empty if it is not.
        command: What shows it.
        blame: What tells which package made it.
    """

    case: str
    platform: str
    kind: Effect
    artifact: str
    last: str
    changed_in: str
    cells: tuple[str, str]
    before: str
    after: str
    changed: tuple[str, ...] = ()
    culprit: str = ""
    suspects: dict[str, tuple[str, str]] = {}
    beside: dict[str, tuple[str, str]] = {}
    searched: Searched | None = None
    upstream: str = ""
    known: str = ""
    command: str = ""
    blame: str = ""


class ChangeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Cases that one release changed in the same way.

    Attributes:
        kind: What the upgrade does to them.
        transitions: The change of each case that did it: places in the list of all changes.
    """

    kind: Effect
    transitions: tuple[int, ...]


class CaseOf(msgspec.Struct, frozen=True, kw_only=True):
    """A case on a platform, and what the upgrade does to it."""

    case: str
    platform: str
    kind: Effect


class Between(msgspec.Struct, frozen=True, kw_only=True):
    """A case that breaks between the ends alone, how, and in which release."""

    case: str
    platform: str
    kind: Effect
    changed_in: str


class Untried(msgspec.Struct, frozen=True, kw_only=True):
    """A case, and on how many releases that it applies to it was not tried."""

    case: str
    platform: str
    releases: int


class Aside(msgspec.Struct, frozen=True, kw_only=True):
    """A case on a platform, and why little is said of it."""

    case: str
    platform: str
    reason: str


class SkippedCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that could not be tried, and why."""

    cell: str
    reason: str


class Jobs(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that were tried, of those that there would be with every case on every release."""

    tried: int
    of: int


class UpgradeFile(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """An upgrade.

    Attributes:
        format: Version of the file.
        from_: The old end.
        to: The new end.
        platforms: The platforms.
        noun: Noun for what is compared: `case`, or `test` of a suite.
        verdict: The summary, one paragraph.
        counts: How many cases by effect.
        axes: What lies between both ends, by platform.
        transitions: Every change on the way.
        groups: Changes by effect, release and root cause, the gravest first.
        cases: Every case that was compared.
        between: Cases that break between the ends alone.
        untried: Cases that were not tried on every release.
        flaky: Cases that did not do the same twice, and how they differ.
        not_compared: Cases that do not run at an end, and why.
        fails_alike: Cases that fail at both ends, undeclared, and how.
        left_out: Cells that could not be tried.
        jobs: What it took.
    """

    format: int = FORMAT
    from_: str
    to: str
    platforms: tuple[str, ...] = ()
    noun: str = "case"
    verdict: str
    counts: dict[Effect, int]
    axes: tuple[PlatformAxis, ...]
    transitions: tuple[UpgradeChange, ...]
    groups: tuple[ChangeGroup, ...]
    cases: tuple[CaseOf, ...]
    between: tuple[Between, ...] = ()
    untried: tuple[Untried, ...] = ()
    flaky: tuple[Aside, ...]
    not_compared: tuple[Aside, ...]
    fails_alike: tuple[Aside, ...]
    left_out: tuple[SkippedCell, ...]
    jobs: Jobs

    def __post_init__(self) -> None:
        """Refuse groups of changes that are not there, or of none."""
        known = range(len(self.transitions))
        for group in self.groups:
            if not group.transitions or any(n not in known for n in group.transitions):
                raise ValueError("a group of changes that are not there")


class _Format(msgspec.Struct, frozen=True):
    """As much of the file as every version of it has."""

    format: int


def upgrade_of(content: bytes, file: str) -> UpgradeFile:
    """Return the upgrade in a file.

    Args:
        content: What it holds.
        file: Its name, for the message.

    Raises:
        CorruptUpgradeError: If that is no upgrade, or of another version.
    """
    try:
        found = msgspec.json.decode(content, type=_Format).format
        if found == FORMAT:
            return msgspec.json.decode(content, type=UpgradeFile)
    except MALFORMED as error:
        raise CorruptUpgradeError(
            f"{file}: expected what tells of an upgrade: {str(error).lower()}; {ANEW}"
        ) from None
    raise CorruptUpgradeError(
        f"{file}: is of format {found}, expected {FORMAT}: another version wrote it; {ANEW}"
    )
