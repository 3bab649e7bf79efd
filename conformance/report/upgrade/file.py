"""The file of an upgrade, which `conformance upgrade --json` writes and reports read back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from conformance.errors import ConformanceError
from conformance.files import MALFORMED
from conformance.model.run_files import CulpritCommit
from conformance.report.upgrade.result import UpgradeCaseStep, group_changes
from conformance.report.upgrade.text import describe_failure, summarize_upgrade
from conformance.triage.upgrade.costs import CostChange
from conformance.triage.upgrade.effect import Effect, show_change

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.report.upgrade.result import UpgradeResult
    from conformance.search.axes import PackageMove
    from conformance.triage.upgrade.comparison import ComparedCase, Culprits, UpgradeAxis

FORMAT: Final = 1
"""Version of the written format; no other is read."""
REWRITE: Final = "run the same `conformance upgrade` again to write it"


class CorruptUpgradeError(ConformanceError):
    """A file that is not an upgrade, or has another format."""


class UpgradePoint(msgspec.Struct, frozen=True, kw_only=True):
    """A point of an axis.

    Attributes:
        label: Its release, or the name of an end.
        cell: Id of its cell.
    """

    label: str
    cell: str


class PlatformAxis(msgspec.Struct, frozen=True, kw_only=True):
    """The points between both ends on one platform, both included.

    Attributes:
        platform: The platform.
        points: The points in order, including both ends.
    """

    platform: str
    points: Annotated[tuple[UpgradePoint, ...], msgspec.Meta(min_length=2)]


# `from` is a keyword of Python, and the key of the JSON.
class PackageUpdate(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """A package, and its versions before and after."""

    package: str
    from_: str
    to: str


class SearchedPackages(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a search for the packages that made a change.

    Attributes:
        case: Case of the trials.
        guilty: Sets of packages, each of which makes the change.
        beside: Packages without which those of the first set cannot be moved.
        untold: Why no packages were found; empty if they were.
        commits: The commit of jax that made the change; several if one of them did.
        remarks: Lines about the packages.
        layer: The layer that made the change, with the reason.
    """

    case: str
    guilty: tuple[tuple[PackageUpdate, ...], ...] = ()
    beside: tuple[PackageUpdate, ...] = ()
    untold: str = ""
    commits: tuple[CulpritCommit, ...] = ()
    remarks: tuple[str, ...] = ()
    layer: str = ""


class UpgradeChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a case on the way.

    Attributes:
        case: Case id.
        platform: The platform.
        kind: Its effect.
        artifact: Name of the part that shows it: `ending`, `value`, a fact or a cost metric.
        last: The last release tried before the change.
        changed_in: The first release tried after it.
        cells: Ids of the compared cells, the older first.
        before: The artifact before the change, in a line.
        after: The artifact after it.
        changed: Names of all artifacts that differ.
        culprit: The package that made it, empty where more than one may have.
        suspects: Packages that may have made it, with both versions.
        beside: Suspects that are not packages of jax.
        searched: Result of a search for the package; None if none was made.
        upstream: Thread of the declared deviation.
        known: Why the failure of a test is known, empty if it is not.
        command: Shell command that shows it.
        blame: Shell command that finds the package that made it.
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
    # msgspec copies an empty default for each instance.
    suspects: dict[str, tuple[str, str]] = {}
    beside: dict[str, tuple[str, str]] = {}
    searched: SearchedPackages | None = None
    upstream: str = ""
    known: str = ""
    command: str = ""
    blame: str = ""


class ChangeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Cases that one release changed in the same way.

    Attributes:
        kind: Effect of the upgrade on them.
        transitions: Decisive change of each case, as an index into `transitions` of the file.
    """

    kind: Effect
    transitions: tuple[int, ...]


class CaseEffect(msgspec.Struct, frozen=True, kw_only=True):
    """A case on a platform, and the effect of the upgrade on it."""

    case: str
    platform: str
    kind: Effect


class PassingBreak(msgspec.Struct, frozen=True, kw_only=True):
    """A case that breaks between the ends and works at both, with the effect and the release."""

    case: str
    platform: str
    kind: Effect
    changed_in: str


class PartlyTriedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case, with the number of releases that it applies to and was not tried on."""

    case: str
    platform: str
    releases: int


class UncomparedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case on a platform that is not compared in full, and the reason."""

    case: str
    platform: str
    reason: str


class SkippedCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that could not be tried, and why."""

    cell: str
    reason: str


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Number of jobs that were tried, and of a run with every case on every release."""

    tried: int
    of: int


class UpgradeFile(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """An upgrade.

    Attributes:
        format: Version of the file.
        from_: The old end.
        to: The new end.
        platforms: The platforms.
        noun: Noun for a compared case: `case`, or `test` of a suite.
        verdict: The summary, one paragraph.
        counts: Number of cases by effect.
        axes: The points between both ends, by platform.
        transitions: Every change on the way.
        groups: Changes by effect, release and root cause, the gravest first.
        cases: Every case that was compared.
        between: Cases that break between the ends alone.
        untried: Cases that were not tried on every release.
        flaky: Cases whose attempts disagree, and how.
        not_compared: Cases that do not run at an end, and why.
        fails_alike: Cases that fail at both ends, undeclared, and how.
        left_out: Cells that could not be tried.
        jobs: Number of jobs.
        measured: Number of cases whose time and memory were compared.
        costs: Those that take more or less.
    """

    format: int = FORMAT
    from_: str
    to: str
    platforms: tuple[str, ...] = ()
    # The first files of format 1 lack `noun`, `between` and `untried`.
    noun: str = "case"
    verdict: str
    counts: dict[Effect, int]
    axes: tuple[PlatformAxis, ...]
    transitions: tuple[UpgradeChange, ...]
    groups: tuple[ChangeGroup, ...]
    cases: tuple[CaseEffect, ...]
    between: tuple[PassingBreak, ...] = ()
    untried: tuple[PartlyTriedCase, ...] = ()
    flaky: tuple[UncomparedCase, ...]
    not_compared: tuple[UncomparedCase, ...]
    fails_alike: tuple[UncomparedCase, ...]
    left_out: tuple[SkippedCell, ...]
    jobs: JobCounts
    measured: int = 0
    costs: tuple[CostChange, ...] = ()

    def __post_init__(self) -> None:
        """Refuse empty groups and indices without a change: pages take the first of each group."""
        known = range(len(self.transitions))
        for group in self.groups:
            if not group.transitions or any(n not in known for n in group.transitions):
                raise ValueError("a group without changes, or of changes that are missing")


class _Format(msgspec.Struct, frozen=True):
    """The part of the file that every format has, decoded first to name another format."""

    format: int


def decode_upgrade(content: bytes, file: str) -> UpgradeFile:
    """Return the upgrade in a file.

    Args:
        content: The content of the file.
        file: Name of the file, for the message.

    Raises:
        CorruptUpgradeError: If the content is not an upgrade, or has another format.
    """
    try:
        found = msgspec.json.decode(content, type=_Format).format
        if found == FORMAT:
            return msgspec.json.decode(content, type=UpgradeFile)
    # Its messages begin in upper case, messages of the project in lower case.
    except MALFORMED as error:
        raise CorruptUpgradeError(
            f"{file}: expected the JSON of an upgrade: {str(error).lower()}; {REWRITE}"
        ) from None
    raise CorruptUpgradeError(f"{file}: format {found}, expected {FORMAT}; {REWRITE}")


def make_upgrade_file(upgraded: UpgradeResult) -> UpgradeFile:
    """Return an upgrade as its file has it.

    Args:
        upgraded: The upgrade.
    """
    before, after = upgraded.axes[0].ends
    whole = upgraded.whole
    changes = [UpgradeCaseStep(case, step) for case in whole for step in case.steps]
    # Two cases may change equally: by value, both would have the number of the later one.
    numbers = {id(change.step): number for number, change in enumerate(changes)}
    counts = Counter(case.effect for case in whole)

    def list_asides(explain: Callable[[ComparedCase], str]) -> tuple[UncomparedCase, ...]:
        reasons = ((case, explain(case)) for case in upgraded.compared)
        return tuple(
            UncomparedCase(**_name_case(case), reason=reason) for case, reason in reasons if reason
        )

    return UpgradeFile(
        from_=before,
        to=after,
        platforms=tuple(axis.platform for axis in upgraded.axes),
        noun=upgraded.noun,
        verdict=summarize_upgrade(upgraded),
        counts={effect: counts[effect] for effect in Effect},
        axes=tuple(map(_make_axis, upgraded.axes)),
        transitions=tuple(map(_make_change, changes)),
        groups=tuple(
            ChangeGroup(
                kind=group.effect,
                transitions=tuple(numbers[id(member.step)] for member in group.members),
            )
            for group in group_changes(upgraded)
        ),
        cases=tuple(CaseEffect(**_name_case(case), kind=case.effect) for case in whole),
        between=tuple(
            PassingBreak(
                **_name_case(case), kind=step.effect, changed_in=case.axis.labels[step.after]
            )
            for case, step in upgraded.passing
        ),
        untried=tuple(
            PartlyTriedCase(**_name_case(case), releases=case.untried)
            for case in whole
            if case.untried
        ),
        flaky=list_asides(lambda case: case.flaky),
        not_compared=list_asides(lambda case: case.refusal),
        fails_alike=list_asides(describe_failure),
        left_out=tuple(SkippedCell(cell=e.cell, reason=e.reason) for e in upgraded.left_out),
        jobs=JobCounts(tried=upgraded.jobs, of=upgraded.every_job),
        measured=upgraded.measured,
        costs=upgraded.costs,
    )


def _name_case(compared: ComparedCase) -> dict[str, str]:
    return {"case": compared.case.id, "platform": compared.axis.platform}


def _make_axis(axis: UpgradeAxis) -> PlatformAxis:
    points = zip(axis.labels, axis.cells, strict=True)
    return PlatformAxis(
        platform=axis.platform,
        points=tuple(UpgradePoint(label=label, cell=planned.cell.id) for label, planned in points),
    )


def _make_change(change: UpgradeCaseStep) -> UpgradeChange:
    step, (last, changed_in) = change.step, change.releases
    shown, culprits = show_change(step.change), step.culprits
    return UpgradeChange(
        **_name_case(change.compared),
        kind=step.effect,
        artifact=shown.artifact,
        last=last,
        changed_in=changed_in,
        cells=(step.change.before.record.cell, step.change.after.record.cell),
        before=shown.before,
        after=shown.after,
        changed=step.change.changed,
        culprit=change.culprit,
        suspects=change.suspects,
        beside=change.other_suspects,
        searched=None if culprits is None else _make_searched(culprits),
        upstream=change.thread,
        known=change.known,
        command=change.command,
        blame=change.blame_command,
    )


def _make_searched(culprits: Culprits) -> SearchedPackages:
    return SearchedPackages(
        case=culprits.case,
        guilty=tuple(tuple(map(_make_package, packages)) for packages in culprits.guilty),
        beside=tuple(map(_make_package, culprits.needed)),
        untold=culprits.doubts,
        commits=culprits.commits,
        remarks=culprits.remarks,
        layer=culprits.layer,
    )


def _make_package(move: PackageMove) -> PackageUpdate:
    return PackageUpdate(package=move.package, from_=move.before, to=move.after)
