"""What an upgrade does, as data: the contract of `conformance upgrade --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.report.upgrade_culprits import beside, blame, culprit, culprits_json, suspects
from conformance.report.upgrade_file import FORMAT
from conformance.report.upgrade_text import failure, verdict
from conformance.report.upgraded import command, groups, known, upstream
from conformance.triage.upgrade.effect import Effect, show_change

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.report.upgraded import Upgraded
    from conformance.triage.upgrade.comparison import ComparedCase, UpgradeAxis, UpgradeStep


def upgrade_json(upgraded: Upgraded) -> dict[str, Any]:
    """Return an upgrade as the contract of `--json` has it; `UpgradeFile` reads it back.

    Args:
        upgraded: The upgrade.
    """
    before, after = upgraded.axes[0].ends
    steps = [(one, step) for one in upgraded.whole for step in one.steps]
    return {
        "format": FORMAT,
        "from": before,
        "to": after,
        "platforms": [axis.platform for axis in upgraded.axes],
        "noun": upgraded.noun,
        "verdict": verdict(upgraded),
        "counts": {effect: _count(upgraded.whole, effect) for effect in Effect},
        "axes": [_axis_json(axis) for axis in upgraded.axes],
        "transitions": [_step_json(one, step) for one, step in steps],
        "groups": _groups_json(upgraded, steps),
        "cases": [
            {"case": one.case.id, "platform": one.axis.platform, "kind": one.effect}
            for one in upgraded.whole
        ],
        "between": [
            {
                "case": one.case.id,
                "platform": one.axis.platform,
                "kind": step.effect,
                "changed_in": one.axis.labels[step.after],
            }
            for one, step in upgraded.passing
        ],
        "untried": [
            {"case": one.case.id, "platform": one.axis.platform, "releases": one.untried}
            for one in upgraded.whole
            if one.untried
        ],
        "flaky": [_problem(one, one.flaky) for one in upgraded.compared if one.flaky],
        "not_compared": [_problem(one, one.refused) for one in upgraded.compared if one.refused],
        "fails_alike": [_problem(one, said) for one in upgraded.whole if (said := failure(one))],
        "left_out": [{"cell": e.cell, "reason": e.reason} for e in upgraded.left_out],
        "jobs": {"tried": upgraded.jobs, "of": upgraded.every_job},
    }


def _count(compared: Iterable[ComparedCase], effect: Effect) -> int:
    return sum(one.effect is effect for one in compared)


def _problem(one: ComparedCase, reason: str) -> dict[str, str]:
    return {"case": one.case.id, "platform": one.axis.platform, "reason": reason}


def _axis_json(axis: UpgradeAxis) -> dict[str, Any]:
    points = zip(axis.labels, axis.cells, strict=True)
    return {
        "platform": axis.platform,
        "points": [{"label": label, "cell": planned.cell.id} for label, planned in points],
    }


def _groups_json(
    upgraded: Upgraded, steps: Sequence[tuple[ComparedCase, UpgradeStep]]
) -> list[dict[str, Any]]:
    """Return the groups, their changes by number: that of the step which made each what it is."""
    numbers = {id(step): number for number, (_, step) in enumerate(steps)}
    return [
        {
            "kind": group.effect,
            "transitions": [numbers[id(one.decisive)] for one in group.members],
        }
        for group in groups(upgraded)
    ]


def _step_json(one: ComparedCase, step: UpgradeStep) -> dict[str, Any]:
    labels, seen = one.axis.labels, show_change(step.change)
    return {
        "case": one.case.id,
        "platform": one.axis.platform,
        "kind": step.effect,
        "artifact": seen.artifact,
        "last": labels[step.before],
        "changed_in": labels[step.after],
        "cells": [side.record.cell for side in (step.change.before, step.change.after)],
        "before": seen.before,
        "after": seen.after,
        "changed": list(step.change.changed),
        "culprit": culprit(one, step),
        "suspects": suspects(one, step),
        "beside": beside(one, step),
        "searched": culprits_json(step.culprits),
        "upstream": upstream(one, step),
        "known": known(one, step),
        "command": command(one, step),
        "blame": blame(one, step),
    }
