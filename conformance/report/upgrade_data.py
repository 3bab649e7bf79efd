"""From an upgrade to its file: the contract of `conformance upgrade --json`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from conformance.report.upgrade_culprits import beside, blame, culprit, searched, suspects
from conformance.report.upgrade_file import (
    Aside,
    Between,
    CaseOf,
    ChangeGroup,
    Jobs,
    PlatformAxis,
    SkippedCell,
    Untried,
    UpgradeChange,
    UpgradeFile,
    UpgradePoint,
)
from conformance.report.upgrade_result import command, group_changes, known, upstream
from conformance.report.upgrade_text import failure, verdict
from conformance.triage.upgrade.effect import Effect, show_change

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.report.upgrade_result import UpgradeResult
    from conformance.triage.upgrade.comparison import ComparedCase, UpgradeAxis, UpgradeStep


def make_upgrade_file(upgraded: UpgradeResult) -> UpgradeFile:
    """Return an upgrade as its file has it.

    Args:
        upgraded: The upgrade.
    """
    before, after = upgraded.axes[0].ends
    whole, compared = upgraded.whole, upgraded.compared
    steps = [(one, step) for one in whole for step in one.steps]
    numbers = {id(step): number for number, (_, step) in enumerate(steps)}
    counts = Counter(one.effect for one in whole)

    def asides(why: Callable[[ComparedCase], str]) -> tuple[Aside, ...]:
        found = ((one, why(one)) for one in compared)
        return tuple(Aside(**_where(one), reason=reason) for one, reason in found if reason)

    return UpgradeFile(
        from_=before,
        to=after,
        platforms=tuple(axis.platform for axis in upgraded.axes),
        noun=upgraded.noun,
        verdict=verdict(upgraded),
        counts={effect: counts[effect] for effect in Effect},
        axes=tuple(map(_axis, upgraded.axes)),
        transitions=tuple(_change(one, step) for one, step in steps),
        # That of the step which made each what it is.
        groups=tuple(
            ChangeGroup(
                kind=group.effect,
                transitions=tuple(numbers[id(one.decisive)] for one in group.members),
            )
            for group in group_changes(upgraded)
        ),
        cases=tuple(CaseOf(**_where(one), kind=one.effect) for one in whole),
        between=tuple(
            Between(**_where(one), kind=step.effect, changed_in=one.axis.labels[step.after])
            for one, step in upgraded.passing
        ),
        untried=tuple(Untried(**_where(one), releases=one.untried) for one in whole if one.untried),
        flaky=asides(lambda one: one.flaky),
        not_compared=asides(lambda one: one.refused),
        fails_alike=asides(failure),
        left_out=tuple(SkippedCell(cell=e.cell, reason=e.reason) for e in upgraded.left_out),
        jobs=Jobs(tried=upgraded.jobs, of=upgraded.every_job),
    )


def _where(one: ComparedCase) -> dict[str, str]:
    return {"case": one.case.id, "platform": one.axis.platform}


def _axis(axis: UpgradeAxis) -> PlatformAxis:
    points = zip(axis.labels, axis.cells, strict=True)
    return PlatformAxis(
        platform=axis.platform,
        points=tuple(UpgradePoint(label=label, cell=planned.cell.id) for label, planned in points),
    )


def _change(one: ComparedCase, step: UpgradeStep) -> UpgradeChange:
    labels, seen = one.axis.labels, show_change(step.change)
    return UpgradeChange(
        **_where(one),
        kind=step.effect,
        artifact=seen.artifact,
        last=labels[step.before],
        changed_in=labels[step.after],
        cells=(step.change.before.record.cell, step.change.after.record.cell),
        before=seen.before,
        after=seen.after,
        changed=step.change.changed,
        culprit=culprit(one, step),
        suspects=suspects(one, step),
        beside=beside(one, step),
        searched=searched(step.culprits),
        upstream=upstream(one, step),
        known=known(one, step),
        command=command(one, step),
        blame=blame(one, step),
    )
