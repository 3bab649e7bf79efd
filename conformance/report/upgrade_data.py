"""What an upgrade does, as data: the contract of `conformance upgrade --json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.report.upgrade_text import verdict
from conformance.report.upgraded import command, culprit, suspects, upstream
from conformance.triage.upgrade.effect import Effect, told

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.report.upgraded import Upgraded
    from conformance.triage.upgrade.upgrading import Compared, Step


def upgrade_json(upgraded: Upgraded) -> dict[str, Any]:
    """Return an upgrade as the contract of `--json` has it.

    Args:
        upgraded: The upgrade.
    """
    before, after = upgraded.axes[0].ends
    return {
        "from": before,
        "to": after,
        "platforms": [axis.platform for axis in upgraded.axes],
        "verdict": verdict(upgraded),
        "counts": {effect: _count(upgraded.whole, effect) for effect in Effect},
        "transitions": [_step_json(one, step) for one in upgraded.whole for step in one.steps],
        "cases": [
            {"case": one.case.id, "platform": one.axis.platform, "kind": one.effect}
            for one in upgraded.whole
        ],
        "flaky": [_problem(one, one.flaky) for one in upgraded.compared if one.flaky],
        "not_compared": [_problem(one, one.refused) for one in upgraded.compared if one.refused],
        "left_out": [{"cell": e.cell, "reason": e.reason} for e in upgraded.left_out],
        "jobs": {"tried": upgraded.jobs, "of": upgraded.every_job},
    }


def _count(compared: Iterable[Compared], effect: Effect) -> int:
    return sum(one.effect is effect for one in compared)


def _problem(one: Compared, reason: str) -> dict[str, str]:
    return {"case": one.case.id, "platform": one.axis.platform, "reason": reason}


def _step_json(one: Compared, step: Step) -> dict[str, Any]:
    labels, seen = one.axis.labels, told(step.change)
    return {
        "case": one.case.id,
        "platform": one.axis.platform,
        "kind": step.effect,
        "artifact": seen.artifact,
        "last": labels[step.before],
        "changed_in": labels[step.after],
        "before": seen.before,
        "after": seen.after,
        "changed": list(step.change.changed),
        "culprit": culprit(one, step),
        "suspects": suspects(one, step),
        "upstream": upstream(one, step),
        "command": command(one, step),
    }
