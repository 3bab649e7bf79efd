"""The result of an upgrade: breaking and other changes, by release and root cause."""

from __future__ import annotations

from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

from conformance.judge.conformance import select_deviations
from conformance.model.outcome import Verdict
from conformance.triage.upgrade.culprit_search import find_cells
from conformance.triage.upgrade.effect import BREAKING, COST_METRICS, Effect, show_change

if TYPE_CHECKING:
    from conformance.model.run import Exclusion
    from conformance.triage.upgrade.comparison import ComparedCase, UpgradeAxis, UpgradeStep


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeResult:
    """The result of an upgrade.

    Attributes:
        compared: Every case on every platform.
        left_out: Releases that could not be tried, and why.
        jobs: Jobs that were tried.
        root: Folder of the project, which files of tracebacks are named from.
    """

    compared: tuple[ComparedCase, ...]
    left_out: tuple[Exclusion, ...] = ()
    jobs: int = 0
    root: str = ""

    @property
    def axes(self) -> tuple[UpgradeAxis, ...]:
        """The points between both ends, by platform."""
        return tuple({one.axis.platform: one.axis for one in self.compared}.values())

    @property
    def noun(self) -> str:
        """The word for a compared case: `case`, or `test` of a suite."""
        return next((one.case.noun for one in self.compared), "case")

    @property
    def whole(self) -> tuple[ComparedCase, ...]:
        """The cases that could be compared."""
        return tuple(one for one in self.compared if one.whole is not None)

    @property
    def breaks(self) -> bool:
        """Whether something breaks, or silently computes something else."""
        return any(one.effect in BREAKING for one in self.whole)

    @property
    def passing(self) -> tuple[tuple[ComparedCase, UpgradeStep], ...]:
        """Cases that break between the ends alone, each with the change that breaks it."""
        return tuple((one, step) for one in self.whole if (step := one.passing) is not None)

    @property
    def every_job(self) -> int:
        """Jobs that there would be with every case on every release."""
        return sum(len(one.axis.cells) for one in self.compared if one.tried)


@dataclass(frozen=True, slots=True)
class UpgradeGroup:
    """Cases that one release changed in the same way."""

    effect: Effect
    members: tuple[ComparedCase, ...]

    @property
    def step(self) -> UpgradeStep:
        """The change, of the first of them."""
        step = self.members[0].decisive
        assert step is not None  # noqa: S101 - what did not change is in no group
        return step


def group_changes(upgraded: UpgradeResult) -> list[UpgradeGroup]:
    """Return the changes by effect, release and root cause; the gravest first.

    Args:
        upgraded: The upgrade.
    """
    found: dict[tuple[Any, ...], list[ComparedCase]] = {}
    for one in upgraded.whole:
        if (step := one.decisive) is not None:
            key = (one.effect, one.axis.labels[step.before], one.axis.labels[step.after])
            found.setdefault((*key, known(one, step), *_cause(step)), []).append(one)
    made = [UpgradeGroup(effect, tuple(members)) for (effect, *_), members in found.items()]
    order = list(Effect)
    return sorted(made, key=lambda g: (order.index(g.effect), g.step.after, -len(g.members)))


def _cause(step: UpgradeStep) -> tuple[str, ...]:
    """Return what of a change is the same for all that one cause changed."""
    seen = show_change(step.change)
    if seen.artifact in COST_METRICS:
        return ("figures",)
    if seen.artifact == "same_as":
        return tuple(seen)
    if seen.artifact != "ending":
        return (seen.artifact,)
    if step.effect is Effect.ENDING:  # of messages that changed there are many, by one edit
        sides = (step.change.before.record.error, step.change.after.record.error)
        return tuple("" if error is None else error.type for error in sides)
    if step.effect is Effect.WRONG:  # how wrong is each case's own
        return (seen.before,)
    return tuple(seen)


def upstream(one: ComparedCase, step: UpgradeStep) -> str:
    """Return the upstream thread of the deviation that a change began or ended, empty if none.

    Args:
        one: The case.
        step: The change.
    """
    fixed = step.effect is Effect.FIXED
    planned = one.axis.cells[step.before if fixed else step.after]
    declared = select_deviations(one.case, planned.release, planned.cell.platform, planned.versions)
    failed = step.effect in {Effect.FIXED, Effect.BROKEN, Effect.WRONG, Effect.ENDING}
    return next((d.issue for d in declared if d.issue and failed), "")


def known(one: ComparedCase, step: UpgradeStep) -> str:
    """Return why the failure of a test that a change began or ended is known, empty if it is not.

    Args:
        one: The test.
        step: The change.
    """
    change = step.change
    failed = (change.before if step.effect is Effect.FIXED else change.after).record
    if one.case.kind != "test" or failed.verdict is not Verdict.KNOWN:
        return ""
    return "; ".join(failed.reasons)


def command(one: ComparedCase, step: UpgradeStep) -> str:
    """Return a command that shows a change.

    Args:
        one: The case.
        step: The change.
    """
    before, after = (planned.cell for planned in find_cells(one, step))
    target = one.case.arguments or quote(one.case.id)
    if one.case.kind == "test":
        where = f"--cell {quote(before.selector)} --cell {quote(after.selector)}"
        return f"conformance suite run {where} {target}"
    if step.effect in {Effect.BROKEN, Effect.WRONG, Effect.ENDING}:
        good = f" --good {before.release}" if before.is_plain and after.is_plain else ""
        return f"conformance repro {target} --cell {quote(after.selector)} --issue{good}"
    where = f"--cell {quote(before.selector)} --cell {quote(after.selector)}"
    return f"conformance diff {target} {where}"
