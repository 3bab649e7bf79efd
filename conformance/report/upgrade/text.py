"""An upgrade as text: a paragraph to paste, then breaking and other changes."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Final

from conformance.engine.runs.transitions import ENDING
from conformance.judge.conformance import select_deviations
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.report.grouping import group_by
from conformance.report.markup import fence, fold, to_code, to_table
from conformance.report.text import join_names, sanitize
from conformance.report.tracebacks import render_traceback
from conformance.report.upgrade.costs import render_costs, render_costs_markdown
from conformance.report.upgrade.result import (
    UpgradeCaseStep,
    describe_culprits,
    find_unclear,
    group_changes,
    render_culprits,
)
from conformance.search.equivalence import format_ending, shorten
from conformance.triage.upgrade.effect import BREAKING, COST_METRICS, SILENT, Effect, show_change
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.report.upgrade.result import UpgradeGroup, UpgradeResult
    from conformance.triage.upgrade.comparison import ComparedCase, UpgradeStep
    from conformance.triage.upgrade.effect import ShownChange

WORDS: Final = {
    Effect.BROKEN: ("breaks", "break"),
    Effect.WRONG: ("becomes silently wrong", "become silently wrong"),
    Effect.VALUE: ("silently changes its value", "silently change their value"),
    Effect.FACTS: ("is compiled to something else", "are compiled to something else"),
    Effect.LARGER: ("takes more work or memory", "take more work or memory"),
    Effect.ENDING: ("fails with another error", "fail with another error"),
    Effect.FIXED: ("is fixed", "are fixed"),
    Effect.UNCHANGED: ("is unchanged", "are unchanged"),
}
"""Verb phrases for a single case and for several."""
TITLES: Final = {
    Effect.BROKEN: "broken",
    Effect.WRONG: "silently wrong",
    Effect.VALUE: "silently changed value",
    Effect.FACTS: "changed facts: collectives, placement, memory, donation, shardings",
    Effect.LARGER: "more work or memory, by XLA's own analysis",
    Effect.ENDING: "fails as before, with another error",
    Effect.FIXED: "fixed",
    Effect.UNCHANGED: "changed on the way, and back",
}
LONGEST: Final = 4_000
"""Characters of a traceback in Markdown."""
MOST: Final = 8
"""Groups of an effect that are shown without `--verbose`."""
ENDS: Final = 2
"""Number of releases of an upgrade without releases in between."""


def summarize_upgrade(upgraded: UpgradeResult) -> str:
    """Return the summary, a paragraph without a line break.

    Args:
        upgraded: The upgrade.
    """
    # The ends are the same on every platform; only the releases in between may differ.
    before, after = upgraded.axes[0].ends
    where = " and ".join(axis.platform for axis in upgraded.axes)
    counts = Counter(compared.effect for compared in upgraded.whole)
    first = {effect: _find_first_release(upgraded, effect) for effect in BREAKING if counts[effect]}
    phrases = [
        f"{counts[effect]} {WORDS[effect][counts[effect] > 1]}{first.get(effect, '')}"
        for effect in Effect
        if counts[effect]
    ]
    text = f"From {_name_end(before)} to {after} on {where}, "
    if phrases:
        text += f"of {plural(len(upgraded.whole), upgraded.noun)} {_join_phrases(phrases)}."
        # Only next to cases that break, which a reader might take for all affected cases.
        silent = sum(counts[effect] for effect in SILENT)
        if silent and counts[Effect.BROKEN]:
            verb = "raises" if silent == 1 else "raise"
            text += f" {silent} of these changes {verb} no error."
        text += _describe_unbroken(upgraded) + _describe_between(upgraded)
    else:
        text += "nothing can be compared."
    if flaky := sum(bool(compared.flaky) for compared in upgraded.compared):
        verb = "is" if flaky == 1 else "are"
        text += (
            f" {plural(flaky, upgraded.noun)} gave different results in two attempts and "
            f"{verb} not compared."
        )
    return text


def _describe_unbroken(upgraded: UpgradeResult) -> str:
    """Return the sentence that nothing breaks, empty if a case breaks.

    A case that fails at both ends cannot break, so the sentence counts these cases.
    """
    if upgraded.breaks or upgraded.passing:
        return ""
    failing = sum(bool(describe_failure(compared)) for compared in upgraded.whole)
    if not failing:
        return " Nothing breaks."
    if failing == len(upgraded.whole):
        return " All fail at both ends: nothing can break."
    fail = "fails" if failing == 1 else "fail"
    return f" Nothing breaks, but {plural(failing, upgraded.noun)} {fail} at both ends."


def _describe_between(upgraded: UpgradeResult) -> str:
    """Return how many cases break only between the ends, and how many may break there untried."""
    text = ""
    if passing := upgraded.passing:
        verb = "breaks" if len(passing) == 1 else "break"
        text += (
            f" {len(passing)} of {plural(len(upgraded.whole), upgraded.noun)} {verb} only between "
            f"the ends ({_describe_first_release(passing)}), not in {upgraded.axes[0].ends[1]}."
        )
    # A case that breaks at the new end is reported as such, wherever else it breaks.
    unseen = sum(bool(c.untried) and c.effect not in BREAKING for c in upgraded.whole)
    if unseen:
        were = "was" if unseen == 1 else "were"
        text += (
            f" {plural(unseen, upgraded.noun)} {were} tried on some of the releases only: "
            "--thorough tries all."
        )
    return text


def _name_end(end: str) -> str:
    """Return the name of the old end, with `jax` before a release but not before a lock or path."""
    return f"jax {end}" if end[0].isdigit() else end


def _find_first_release(upgraded: UpgradeResult, effect: Effect) -> str:
    """Return the first release with an effect, in brackets."""
    decisive = [
        UpgradeCaseStep(case, step)
        for case in upgraded.whole
        if case.effect is effect and (step := case.decisive)
    ]
    return f" ({_describe_first_release(decisive)})"


def _describe_first_release(changes: Sequence[UpgradeCaseStep]) -> str:
    first = min(changes, key=lambda change: change.step.after)
    several = len({change.step.after for change in changes}) > 1
    return f"{'the first in' if several else 'in'} {first.releases[1]}"


def _join_phrases(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def render_upgrade(upgraded: UpgradeResult, *, every: bool = False) -> Iterator[str]:
    """Yield the report of an upgrade, in lines.

    Args:
        upgraded: The upgrade.
        every: True to name every case and show every group.
    """
    yield summarize_upgrade(upgraded)
    for effect, groups in group_by_effect(upgraded):
        yield ""
        yield f"{TITLES[effect]}: {sum(len(group.members) for group in groups)}"
        # Breaking changes are never cut, because each of them needs an answer before an upgrade.
        shown = groups if every or effect in BREAKING else groups[:MOST]
        for group in shown:
            yield from (f"  {line}" for line in _render_group(group, upgraded.root, every=every))
        if len(shown) < len(groups):
            yield f"  and {len(groups) - len(shown)} more kinds, with --verbose"
    yield from render_costs(upgraded)
    yield ""
    yield from render_asides(upgraded)


def group_by_effect(upgraded: UpgradeResult) -> Iterator[tuple[Effect, list[UpgradeGroup]]]:
    """Yield each effect that the upgrade has, the gravest first, with its groups.

    Args:
        upgraded: The upgrade.
    """
    groups = group_changes(upgraded)
    for effect in Effect:
        if counts := [group for group in groups if group.effect is effect]:
            yield effect, counts


def _render_group(group: UpgradeGroup, root: str, *, every: bool) -> Iterator[str]:
    first = group.first
    names = [member.compared.case.id for member in group.members]
    many = f" ({len(names)} {first.compared.case.noun}s)" if len(names) > 1 else ""
    change = describe_change(show_change(first.step.change))
    yield f"{describe_release(first)}{many}: {sanitize(change)}"
    yield f"  {', '.join(names) if every else join_names(names)}"
    if others := "; ".join(_render_others(first)):
        yield f"  also {others}"
    if reason := first.known:
        yield f"  known: {sanitize(shorten(reason))}"
    if thread := first.thread:
        yield f"  upstream {thread}"
    yield from (f"  {line}" for line in render_culprits(first))
    if every or group.effect is Effect.BROKEN:
        yield from (f"  {line}" for line in _render_traceback(first.step, root))
    yield f"  {first.command}"


def _render_traceback(step: UpgradeStep, root: str) -> list[str]:
    """Return the traceback of the newer job that raised, if the ending changed."""
    if show_change(step.change).artifact != ENDING:
        return []
    # A fixed case raised on the older side only.
    sides = (step.change.after, step.change.before)
    tracebacks = (render_traceback(side, [root]) for side in sides if side.record.error is not None)
    return next(tracebacks, [])


def _render_others(decisive: UpgradeCaseStep) -> Iterator[str]:
    """Yield the other changes of a case on the way, by effect."""
    labels = decisive.compared.axis.labels
    others = (step for step in decisive.compared.steps if step is not decisive.step)
    for effect, steps in group_by(others, key=lambda step: step.effect).items():
        title = "another error" if effect is Effect.ENDING else TITLES[effect].partition(":")[0]
        yield f"{title} in {', '.join(labels[step.after] for step in steps)}"


def describe_release(change: UpgradeCaseStep) -> str:
    """Return the release of a change, or both sides if releases between could not be tried.

    Args:
        change: The change.
    """
    before, after = change.releases
    if change.step.after - change.step.before == 1:
        return f"in {after}"
    return f"after {before}, by {after}"


def describe_change(shown: ShownChange) -> str:
    """Return both sides of a change, in a line.

    Args:
        shown: The part of the change that is shown.
    """
    return f"{_label_artifact(shown)}{shown.before} -> {shown.after}"


def _label_artifact(shown: ShownChange) -> str:
    """Return the name of the changed artifact with a colon, empty for endings and values."""
    if shown.artifact in {"ending", "value"}:
        return ""
    return f"{COST_METRICS.get(shown.artifact, shown.artifact)}: "


def render_asides(upgraded: UpgradeResult) -> Iterator[str]:
    """Yield the cases that could not be compared, and the number of jobs.

    Args:
        upgraded: The upgrade.
    """
    for compared in upgraded.compared:
        if compared.flaky:
            place = f"{compared.case.id} on {compared.axis.platform}"
            yield f"flaky: {place}: {sanitize(compared.flaky)}"
    refused = (compared.refusal for compared in upgraded.compared if compared.refusal)
    yield from _render_reasons("not compared", upgraded.noun, refused)
    alike = filter(None, map(describe_failure, upgraded.whole))
    yield from _render_reasons("fails at both ends alike", upgraded.noun, alike)
    yield from _render_unclear(upgraded)
    for entry in upgraded.left_out:
        yield f"left out {entry.cell}: {sanitize(entry.reason)}"
    releases = max(len(axis.cells) for axis in upgraded.axes)
    every = f"all {releases} releases" if releases > ENDS else "both ends"
    yield f"{upgraded.jobs:,} jobs tried, of {upgraded.every_job:,} on {every}"


def describe_failure(compared: ComparedCase) -> str:
    """Return the failure of a case that fails at both ends alike and undeclared, otherwise empty.

    Args:
        compared: The case.
    """
    if compared.whole is None or compared.effect is not Effect.UNCHANGED:
        return ""
    record = compared.whole.after.record
    if record.outcome is Outcome.OK or record.conformance is Conformance.CONFORMS:
        return ""
    if record.verdict is Verdict.KNOWN:  # a test with an xfail mark declares its failure itself
        return ""
    cell = compared.axis.cells[-1]
    declared = select_deviations(compared.case, cell.release, cell.cell.platform, cell.versions)
    return "" if declared else shorten(format_ending(record))


def _render_unclear(upgraded: UpgradeResult) -> Iterator[str]:
    """Yield how many changes have several suspected packages, and the options that find these."""
    if every := sum(1 for _ in find_unclear(upgraded, frozenset(Effect))):
        breaking = sum(1 for _ in find_unclear(upgraded, BREAKING))
        some = f"--blame searches for {breaking}, --blame-all for all"
        how = some if breaking else "--blame-all searches for all"
        yield f"packages: the culprit of {plural(every, 'change')} was not searched for; {how}"


def _render_reasons(what: str, noun: str, reasons: Iterable[str]) -> Iterator[str]:
    for reason, count in Counter(reasons).items():
        yield f"{what}: {plural(count, noun)}: {sanitize(reason)}"


def render_upgrade_markdown(upgraded: UpgradeResult) -> str:
    """Return an upgrade as Markdown: the summary, tables of changes, cases not compared, jobs.

    Args:
        upgraded: The upgrade.
    """
    before, after = upgraded.axes[0].ends
    lines = [f"# {_name_end(before)} to {after}", "", summarize_upgrade(upgraded), ""]
    for effect, groups in group_by_effect(upgraded):
        lines += [f"## {TITLES[effect].capitalize()}", ""]
        rows = [["since", "cases", "before", "after", "package", "upstream"]]
        lines += [to_table([*rows, *map(_render_row, groups)]), ""]
        for group in groups[:MOST] if effect is Effect.BROKEN else ():
            if raised := _render_traceback(group.first.step, upgraded.root):
                # The summary of a fold is HTML, where a case id is not within backticks.
                title = f"Traceback of {escape(group.first.compared.case.id)}"
                lines += [fold(title, fence("\n".join(raised), LONGEST)), ""]
    lines += render_costs_markdown(upgraded)
    lines += [f"- {line}" for line in render_asides(upgraded)]
    return "\n".join(lines) + "\n"


def _render_row(group: UpgradeGroup) -> list[str]:
    first = group.first
    shown = show_change(first.step.change)
    label = _label_artifact(shown)
    return [
        describe_release(first).removeprefix("in "),
        ", ".join(to_code(member.compared.case.id) for member in group.members),
        to_code(shorten(f"{label}{shown.before}")),
        to_code(shorten(f"{label}{shown.after}")),
        describe_culprits(first),
        first.thread,
    ]
