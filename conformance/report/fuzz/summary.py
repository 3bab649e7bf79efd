"""Campaigns of fuzzing and their findings, each listed once, in the form that pages show. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

import msgspec
from packaging.version import Version

from conformance.fuzz.comparison import Kind
from conformance.fuzz.evaluation import RELEASE
from conformance.fuzz.finding import has_same_root
from conformance.fuzz.known_changes import find_known
from conformance.fuzz.script_file import render_script
from conformance.report.fuzz.issue import describe_difference, group_releases

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.fuzz.campaign_log import CampaignLog
    from conformance.fuzz.finding import Finding
    from conformance.model.case import Case
    from conformance.report.fuzz.issue import ReleaseRange

SEVERITY: Final = {str(kind): number for number, kind in enumerate(Kind)}
STATUSES: Final = ("new", "fixed", "known")
"""States of a finding, in the order of lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRow:
    """A campaign, as a table shows it.

    Attributes:
        name: Name of its folder.
        seed: Seed of its programs.
        first: Its oldest release.
        last: Its newest release.
        cells: Number of its cells.
        programs: Number of programs.
        valid: Number of programs that ran on the newest release.
        seconds: Seconds of its rounds, findings included.
        rate: Valid programs per second of evaluation; 0 without any round.
        findings: Number of findings.
    """

    name: str
    seed: int
    first: str
    last: str
    cells: int
    programs: int
    valid: int
    seconds: float
    rate: float
    findings: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDifference:
    """A finding of one campaign or several.

    Attributes:
        finding: The finding, of the campaign that tried most releases.
        campaigns: Names of the campaigns that found it.
        programs: Number of programs that showed it, in all campaigns.
        others: Ids of findings that most likely have the same root.
    """

    finding: Finding
    campaigns: tuple[str, ...]
    programs: int
    others: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """One of `STATUSES`."""
        return self.finding.status.partition(" ")[0].rstrip(":")

    @property
    def script(self) -> str:
        """Its script."""
        return render_script(self.finding).rstrip()

    @property
    def difference(self) -> str:
        """The difference in a line."""
        return describe_difference(self.finding)

    @property
    def ranges(self) -> list[ReleaseRange]:
        """Its results on the releases; empty for logs of earlier versions."""
        return group_releases(self.finding)

    def covers(self, finding: Finding) -> bool:
        """Return whether another finding most likely has the same root.

        Args:
            finding: A finding with as many operations and transforms, or more.
        """
        own = self.finding
        same = (own.oracle, own.kind, own.releases) == (
            finding.oracle, finding.kind, finding.releases
        )  # fmt: skip
        return (
            own.id == finding.id
            or has_same_root(own, finding)
            or (
                same
                and {*own.operations} <= {*finding.operations}
                and {*own.transforms} <= {*finding.transforms}
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzSummary:
    """Campaigns and their findings.

    Attributes:
        campaigns: The campaigns.
        differences: Differences between releases and within one, each once; new ones first, the
            most severe first.
    """

    campaigns: tuple[CampaignRow, ...]
    differences: tuple[FoundDifference, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Number of findings by state."""
        found = Counter(one.state for one in self.differences)
        return {state: found[state] for state in STATUSES}

    @property
    def programs(self) -> int:
        """Number of programs of all campaigns."""
        return sum(row.programs for row in self.campaigns)

    @property
    def seconds(self) -> float:
        """Seconds of all campaigns."""
        return sum(row.seconds for row in self.campaigns)

    @property
    def by_release(self) -> list[tuple[str, list[FoundDifference]]]:
        """The differences between releases by the newest release that shows a change, newest first.

        Differences that are no change of a release, such as one from NumPy, are last, with an empty
        release.
        """
        ordered = sorted(self.differences, key=_get_version, reverse=True)
        return [(key, [*group]) for key, group in groupby(ordered, _get_release)]


def _get_release(one: FoundDifference) -> str:
    finding = one.finding
    return finding.releases[-1] if finding.oracle == RELEASE and finding.releases else ""


def _get_version(one: FoundDifference) -> Version:
    return Version(_get_release(one) or "0")


def summarize_campaigns(
    logs: Iterable[CampaignLog],
    changes: Sequence[BehaviourChange] = (),
    cases: Sequence[Case] = (),
) -> FuzzSummary:
    """Return a summary of campaigns; equal findings are listed once.

    Args:
        logs: Logs of the campaigns.
        changes: Changes of the history: a finding may have become known after its campaign.
        cases: Cases with their deviations.
    """
    ordered = sorted(logs, key=lambda log: log.folder.name)
    every = [(log.folder.name, each) for log in ordered for each in log.findings.values()]
    # The simplest first: it covers the others with its operations. Of equal ones, the one that
    # was tried on most releases.
    every.sort(
        key=lambda pair: (len(pair[1].operations) + len(pair[1].transforms), -len(pair[1].results))
    )
    found: list[FoundDifference] = []
    for name, finding in every:
        _add(found, finding, name)
    if changes or cases:
        found = [_update_status(one, changes, cases) for one in found]
    found.sort(
        key=lambda one: (
            STATUSES.index(one.state), SEVERITY[one.finding.kind], one.finding.operations
        )
    )  # fmt: skip
    return FuzzSummary(campaigns=tuple(map(_make_row, ordered)), differences=tuple(found))


def _add(found: list[FoundDifference], finding: Finding, campaign: str) -> None:
    for number, one in enumerate(found):
        if one.covers(finding):
            others = {*one.others, finding.id} - {one.finding.id}
            found[number] = replace(
                one,
                campaigns=tuple(sorted({*one.campaigns, campaign})),
                programs=one.programs + len(finding.programs),
                others=tuple(sorted(others)),
            )
            return
    found.append(
        FoundDifference(finding=finding, campaigns=(campaign,), programs=len(finding.programs))
    )


def _update_status(
    one: FoundDifference, changes: Sequence[BehaviourChange], cases: Sequence[Case]
) -> FoundDifference:
    known = find_known(one.finding, changes, cases)
    return replace(one, finding=msgspec.structs.replace(one.finding, known=known))


def _get_cell_release(cell: str) -> str:
    """Return the release in the id of a cell, the id itself for an environment."""
    release = cell.removeprefix("jax").partition("-")[0]
    return release if release[:1].isdigit() else cell


def _make_row(log: CampaignLog) -> CampaignRow:
    outcomes = Counter[str]()
    for done in log.rounds:
        outcomes.update(done.outcomes)
    seconds = sum(done.seconds for done in log.rounds)
    cells = log.settings.cells
    return CampaignRow(
        name=log.folder.name, seed=log.settings.seed, first=_get_cell_release(cells[0]),
        last=_get_cell_release(cells[-1]), cells=len(cells), programs=sum(outcomes.values()),
        valid=outcomes["ok"], seconds=sum(done.total_seconds for done in log.rounds),
        rate=outcomes["ok"] / seconds if seconds else 0.0, findings=len(log.findings),
    )  # fmt: skip
