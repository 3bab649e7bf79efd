"""The result of an upgrade: changes by release and root cause, and the packages behind them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from conformance.cells.resolver import IMPORTED_BY_JAX, JAX_PACKAGES
from conformance.judge.conformance import select_deviations
from conformance.model.outcome import Verdict
from conformance.report.grouping import group_by
from conformance.report.text import sanitize
from conformance.triage.evidence import render_origin
from conformance.triage.upgrade.comparison import choose_predicate_options
from conformance.triage.upgrade.effect import BREAKING, COST_METRICS, Effect, show_change

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from conformance.model.run import Exclusion
    from conformance.search.axes import PackageMove
    from conformance.triage.upgrade.comparison import (
        ComparedCase,
        Culprits,
        UpgradeAxis,
        UpgradeStep,
    )
    from conformance.triage.upgrade.costs import CostChange

FEW: Final = 3
"""Packages that are named of a longer list."""


class UpgradeCaseStep(NamedTuple):
    """A change of a case on the way from one end to the other.

    Attributes:
        compared: The case.
        step: The change.
    """

    compared: ComparedCase
    step: UpgradeStep

    @property
    def releases(self) -> tuple[str, str]:
        """Labels of the points before and after the change."""
        labels = self.compared.axis.labels
        return labels[self.step.before], labels[self.step.after]

    @property
    def thread(self) -> str:
        """Upstream thread of the deviation that the change began or ended, empty for none."""
        case, effect = self.compared.case, self.step.effect
        planned = self.compared.axis.cells[
            self.step.before if effect is Effect.FIXED else self.step.after
        ]
        # A value or a fact may change while an unrelated deviation is declared: its thread is not
        # about the change.
        declared = select_deviations(case, planned.release, planned.cell.platform, planned.versions)
        failed = effect in {Effect.FIXED, Effect.BROKEN, Effect.WRONG, Effect.ENDING}
        return next((each.issue for each in declared if each.issue and failed), "")

    @property
    def known(self) -> str:
        """Why the failure of a test that the change began or ended is known, empty if it is not."""
        change = self.step.change
        failed = (change.before if self.step.effect is Effect.FIXED else change.after).record
        if self.compared.case.kind != "test" or failed.verdict is not Verdict.KNOWN:
            return ""
        return "; ".join(failed.reasons)

    @property
    def command(self) -> str:
        """The shell command that shows the change."""
        case = self.compared.case
        before, after = (planned.cell for planned in self.compared.find_cells(self.step))
        target = case.arguments or quote(case.id)
        cells = f"--cell {quote(before.selector)} --cell {quote(after.selector)}"
        if case.kind == "test":
            return f"conformance suite run {cells} {target}"
        if self.step.effect in {Effect.BROKEN, Effect.WRONG, Effect.ENDING}:
            # `--good` takes a release: a lock, a path or an overlay has no plain one.
            good = f" --good {before.release}" if before.is_plain and after.is_plain else ""
            return f"conformance repro {target} --cell {quote(after.selector)} --issue{good}"
        return f"conformance diff {target} {cells}"

    @property
    def blame_command(self) -> str:
        """The shell command that finds which of several packages made the change."""
        before, after = (
            quote(planned.cell.selector) for planned in self.compared.find_cells(self.step)
        )
        when, fact = choose_predicate_options(self.step)
        options = (f" --when {when}" if when else "") + (f" --fact {quote(fact)}" if fact else "")
        # `blame` runs a test as a program with its packages, and takes no arguments of pytest.
        case = self.compared.case
        target = case.arguments.partition(" -- ")[0] or quote(case.id)
        return f"conformance blame {target} --good {before} --bad {after}{options}"

    @property
    def suspects(self) -> dict[str, tuple[str, str]]:
        """Packages that may have made the change, with their versions before and after.

        These are the packages that every case imports. Any other package is a suspect too if the
        case requires a package, is a test of a suite, or runs with an overlay: their imports
        are unknown.
        """
        # The imports of other packages are unknown, so none of these can be ruled out.
        case, sides = self.compared.case, self.compared.find_cells(self.step)
        before, after = (planned.versions for planned in sides)
        overlaid = any(planned.overlay for planned in sides)
        any_package = case.kind == "test" or overlaid or bool(case.requires)
        moves = {
            name: (before.get(name, "none"), after.get(name, "none"))
            for name in sorted({**before, **after})
            if any_package or JAX_PACKAGES.fullmatch(name) or name in IMPORTED_BY_JAX
        }
        return {name: (old, new) for name, (old, new) in moves.items() if old != new}

    @property
    def other_suspects(self) -> dict[str, tuple[str, str]]:
        """The suspects that are not packages of jax."""
        return {name: m for name, m in self.suspects.items() if not JAX_PACKAGES.fullmatch(name)}

    @property
    def culprit(self) -> str:
        """The package that made the change, empty where more than one may have.

        Commas separate packages that made it together, "or" those that each make it alone. jax
        includes the packages that are released with it.
        """
        if self.step.culprits is None:
            return "" if self.other_suspects else "jax"
        return " or ".join(map(_name_packages, self.step.culprits.guilty))


def _name_packages(packages: Iterable[PackageMove]) -> str:
    names = [move.package for move in packages]
    # jaxlib is released with jax: naming both would read as two causes.
    only_jax = "jax" in names and all(map(JAX_PACKAGES.fullmatch, names))
    return "jax" if only_jax else ", ".join(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeResult:
    """The result of an upgrade.

    Attributes:
        compared: Every case on every platform.
        left_out: Releases that could not be tried, and why.
        jobs: Number of jobs that were tried.
        root: Folder of the project; files of tracebacks are relative to it.
        costs: Cases whose time or memory differs between the ends.
        measured: Number of cases whose time and memory were compared, on all platforms.
    """

    compared: tuple[ComparedCase, ...]
    left_out: tuple[Exclusion, ...] = ()
    jobs: int = 0
    root: str = ""
    costs: tuple[CostChange, ...] = ()
    measured: int = 0

    @property
    def axes(self) -> tuple[UpgradeAxis, ...]:
        """The points between both ends, by platform."""
        return tuple({case.axis.platform: case.axis for case in self.compared}.values())

    @property
    def noun(self) -> str:
        """The word for a compared case: `case`, or `test` of a suite."""
        return next((each.case.noun for each in self.compared), "case")

    @property
    def whole(self) -> tuple[ComparedCase, ...]:
        """The cases that could be compared."""
        return tuple(case for case in self.compared if case.whole is not None)

    @property
    def breaks(self) -> bool:
        """Whether a case breaks, or silently computes another value."""
        return any(case.effect in BREAKING for case in self.whole)

    @property
    def passing(self) -> tuple[UpgradeCaseStep, ...]:
        """The first breaking change of each case that breaks between the ends, not at the end."""
        return tuple(UpgradeCaseStep(case, step) for case in self.whole if (step := case.passing))

    @property
    def every_job(self) -> int:
        """Number of jobs of a run with every case on every release."""
        return sum(len(case.axis.cells) for case in self.compared if case.tried)


@dataclass(frozen=True, slots=True)
class UpgradeGroup:
    """Cases that one release changed in the same way, each with its decisive change."""

    effect: Effect
    members: tuple[UpgradeCaseStep, ...]

    @property
    def first(self) -> UpgradeCaseStep:
        """The member that the group is shown by."""
        return self.members[0]


def group_changes(upgraded: UpgradeResult) -> list[UpgradeGroup]:
    """Return the changes by effect, release and root cause; the gravest first.

    Args:
        upgraded: The upgrade.
    """

    def key(change: UpgradeCaseStep) -> tuple[Any, ...]:
        return change.compared.effect, change.releases, change.known, _find_cause(change.step)

    changes = (UpgradeCaseStep(case, step) for case in upgraded.whole if (step := case.decisive))
    groups = [
        UpgradeGroup(effect, tuple(members))
        for (effect, *_), members in group_by(changes, key).items()
    ]
    order = list(Effect)
    return sorted(
        groups, key=lambda g: (order.index(g.effect), g.first.step.after, -len(g.members))
    )


def _find_cause(step: UpgradeStep) -> tuple[str, ...]:
    """Return the part of a change that is the same in every case with that root cause."""
    shown = show_change(step.change)
    if shown.artifact in COST_METRICS:
        return ("figures",)
    if shown.artifact not in {"ending", "same_as"}:
        return (shown.artifact,)
    if shown.artifact == "ending" and step.effect is Effect.ENDING:
        # An edit upstream rewords the messages of many errors: only their types are compared.
        sides = (step.change.before.record.error, step.change.after.record.error)
        return tuple("" if error is None else error.type for error in sides)
    if shown.artifact == "ending" and step.effect is Effect.WRONG:
        # Each case is wrong by its own amount.
        return (shown.before,)
    return tuple(shown)


def find_unclear(
    upgraded: UpgradeResult, effects: Collection[Effect], *, of_jax: bool = False
) -> Iterator[UpgradeCaseStep]:
    """Yield the first change of each group that packages other than jax's may have made.

    Args:
        upgraded: The upgrade.
        effects: Effects of the groups.
        of_jax: Whether groups count that only jax's packages can have changed.
    """
    for group in group_changes(upgraded):
        if group.effect in effects:
            # One search answers for the group, whose members changed in the same way.
            left = [m for m in group.members if m.step.culprits is None]
            unclear = [m for m in left if m.other_suspects] or (left if of_jax else [])
            if first := next(iter(unclear), None):
                yield first


def add_culprits(upgraded: UpgradeResult, found: Mapping[int, Culprits]) -> UpgradeResult:
    """Return an upgrade with the culprits of its changes.

    Args:
        upgraded: The upgrade.
        found: Culprits by the `id` of the change that was searched. They hold for the whole group
            of that change, except for changes that only jax's packages can have made.
    """
    by_step: dict[int, Culprits] = {}
    for group in group_changes(upgraded):
        searched = [found[id(m.step)] for m in group.members if id(m.step) in found]
        if searched:
            # Without other suspects the packages are known, but not the commit.
            first = searched[0]
            with_commit = bool(first.commits or first.remarks or first.layer)
            by_step |= {id(m.step): first for m in group.members if m.other_suspects or with_commit}
    return replace(upgraded, compared=tuple(_add_to_case(c, by_step) for c in upgraded.compared))


def _add_to_case(case: ComparedCase, by_step: Mapping[int, Culprits]) -> ComparedCase:
    if not any(id(step) in by_step for step in case.steps):
        return case
    steps = (replace(s, culprits=by_step.get(id(s), s.culprits)) for s in case.steps)
    return replace(case, steps=tuple(steps))


def render_culprits(change: UpgradeCaseStep) -> Iterator[str]:
    """Yield the packages that made a change, or may have; nothing where only jax's can have.

    Args:
        change: The change.
    """
    found = change.step.culprits
    if found is None:
        if packages := change.other_suspects:
            versions = _join_few([f"{name} {a} -> {b}" for name, (a, b) in packages.items()])
            yield f"with {versions}: {change.blame_command}"
        return
    tried = f" (searched with {found.case})" if found.case != change.compared.case.id else ""
    for number, guilty in enumerate(found.guilty):
        head = "also sufficient alone" if number else "to blame"
        yield f"{head}: {', '.join(map(str, guilty))}{tried}"
    yield from map(sanitize, render_origin(found))
    if found.doubts:
        head = "" if found.guilty else f"the package was not found{tried}: "
        yield f"{head}{sanitize(found.doubts)}; {change.blame_command}"


def describe_culprits(change: UpgradeCaseStep) -> str:
    """Return the packages that made a change, or may have, in a few words.

    Args:
        change: The change.
    """
    found = change.step.culprits
    if found is None:
        return _join_few(["jax", *change.other_suspects], " or ")
    if not found.guilty:
        return f"not found: {found.doubts}"
    packages = " or ".join(", ".join(map(str, packages)) for packages in found.guilty)
    commits = " or ".join(commit.hash[:12] for commit in found.commits)
    return f"{packages}, commit {commits}" if commits else packages


def _join_few(texts: list[str], separator: str = ", ") -> str:
    more = f" and {len(texts) - FEW} more" if len(texts) > FEW else ""
    return f"{separator.join(texts[:FEW])}{more}"
