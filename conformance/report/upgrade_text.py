"""An upgrade as text: a paragraph to paste, then breaking and other changes."""

from __future__ import annotations

from collections import Counter
from html import escape
from typing import TYPE_CHECKING, Final

from conformance.engine.transitions import ENDING
from conformance.judge.conformance import select_deviations
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.report.markup import fence, fold, to_code
from conformance.report.text import join_names, sanitize
from conformance.report.tracebacks import render_traceback
from conformance.report.upgrade_culprits import culprit_cell, culprit_lines, unclear
from conformance.report.upgrade_result import command, group_changes, known, upstream
from conformance.search.equivalence import format_ending, shorten
from conformance.triage.upgrade.effect import BREAKING, COST_METRICS, SILENT, Effect, show_change
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from conformance.report.upgrade_result import UpgradeGroup, UpgradeResult
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
"""What is said of one case, and of more."""
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
"""Groups of one effect that are shown where not all are."""
ENDS: Final = 2


def verdict(upgraded: UpgradeResult) -> str:
    """Return the summary, a paragraph without a line break.

    Args:
        upgraded: The upgrade.
    """
    before, after = upgraded.axes[0].ends
    where = " and ".join(axis.platform for axis in upgraded.axes)
    found = Counter(one.effect for one in upgraded.whole)
    first = {effect: _find_first_release(upgraded, effect) for effect in BREAKING if found[effect]}
    phrases = [
        f"{found[effect]} {WORDS[effect][found[effect] > 1]}{first.get(effect, '')}"
        for effect in Effect
        if found[effect]
    ]
    text = f"From {_name_end(before)} to {after} on {where}, "
    if phrases:
        text += f"of {plural(len(upgraded.whole), upgraded.noun)} {_join_phrases(phrases)}."
        text += _describe_unbroken(upgraded) + _describe_between(upgraded)
    else:
        text += "nothing can be compared."
    silent = sum(found[effect] for effect in SILENT)
    if silent and found[Effect.BROKEN]:
        text += f" No error tells of {silent} of them."
    if flaky := sum(bool(one.flaky) for one in upgraded.compared):
        text += (
            f" {plural(flaky, upgraded.noun)} did not do the same twice: nothing is said of that."
        )
    return text


def _describe_unbroken(upgraded: UpgradeResult) -> str:
    """Return that nothing breaks, unless something does; what never worked cannot break."""
    if upgraded.breaks or upgraded.passing:
        return ""
    failing = sum(bool(failure(one)) for one in upgraded.whole)
    if not failing:
        return " Nothing breaks."
    if failing == len(upgraded.whole):
        return " All fail at both ends: nothing can break."
    fail = "fails" if failing == 1 else "fail"
    return f" Nothing breaks, but {plural(failing, upgraded.noun)} {fail} at both ends."


def _describe_between(upgraded: UpgradeResult) -> str:
    """Return what breaks between the ends alone, and how many cases may do so unseen."""
    text = ""
    if passing := upgraded.passing:
        releases = {step.after: one.axis.labels[step.after] for one, step in passing}
        first = releases[min(releases)]
        where = f"the first in {first}" if len(releases) > 1 else f"in {first}"
        text += (
            f" Between the ends {plural(len(passing), upgraded.noun)} "
            f"{'breaks' if len(passing) == 1 else 'break'} ({where}), but not in "
            f"{upgraded.axes[0].ends[1]}."
        )
    unseen = sum(bool(one.untried) and one.effect not in BREAKING for one in upgraded.whole)
    if unseen:
        were = "was" if unseen == 1 else "were"
        text += (
            f" {plural(unseen, upgraded.noun)} {were} tried on some of the releases alone: "
            "--thorough tries all."
        )
    return text


def _name_end(end: str) -> str:
    """Return what the end that is left is called; a lock or a path is no release."""
    return f"jax {end}" if end[0].isdigit() else end


def _find_first_release(upgraded: UpgradeResult, effect: Effect) -> str:
    """Return the release that had an effect first, in brackets."""
    of_effect = [one for one in upgraded.whole if one.effect is effect]
    releases = {s.after: one.axis.labels[s.after] for one in of_effect if (s := one.decisive)}
    label = releases[min(releases)]
    return f" (the first in {label})" if len(releases) > 1 else f" (in {label})"


def _join_phrases(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def render_upgrade(upgraded: UpgradeResult, *, every: bool = False) -> Iterator[str]:
    """Yield the report of an upgrade, in lines.

    Args:
        upgraded: The upgrade.
        every: Whether every case is named, and every group shown.
    """
    yield verdict(upgraded)
    for effect, made in group_by_effect(upgraded):
        yield ""
        yield f"{TITLES[effect]}: {sum(len(group.members) for group in made)}"
        shown = made if every or effect in BREAKING else made[:MOST]
        for group in shown:
            yield from (f"  {line}" for line in _render_group(group, upgraded.root, every=every))
        if len(shown) < len(made):
            yield f"  and {len(made) - len(shown)} more kinds, with --verbose"
    yield ""
    yield from render_asides(upgraded)


def group_by_effect(upgraded: UpgradeResult) -> Iterator[tuple[Effect, list[UpgradeGroup]]]:
    """Yield each effect that is seen, the gravest first, with its groups.

    Args:
        upgraded: The upgrade.
    """
    made = group_changes(upgraded)
    for effect in Effect:
        if found := [group for group in made if group.effect is effect]:
            yield effect, found


def _render_group(group: UpgradeGroup, root: str, *, every: bool) -> Iterator[str]:
    first, step = group.members[0], group.step
    names = [one.case.id for one in group.members]
    many = f" ({len(names)} {first.case.noun}s)" if len(names) > 1 else ""
    yield f"{since(first, step)}{many}: {sanitize(said(show_change(step.change)))}"
    yield f"  {', '.join(names) if every else join_names(names)}"
    if others := "; ".join(_render_others(first, step)):
        yield f"  also {others}"
    if reason := known(first, step):
        yield f"  known: {sanitize(shorten(reason))}"
    if issue := upstream(first, step):
        yield f"  upstream {issue}"
    yield from (f"  {line}" for line in culprit_lines(first, step))
    if every or group.effect is Effect.BROKEN:
        yield from (f"  {line}" for line in _render_traceback(step, root))
    yield f"  {command(first, step)}"


def _render_traceback(step: UpgradeStep, root: str) -> list[str]:
    """Return the traceback of the newer job that a change of an ending is about."""
    if show_change(step.change).artifact != ENDING:
        return []
    sides = (step.change.after, step.change.before)
    found = (render_traceback(side, [root]) for side in sides if side.record.error is not None)
    return next(found, [])


def _render_others(one: ComparedCase, decisive: UpgradeStep) -> Iterator[str]:
    """Yield what else changed on the way, by effect."""
    found: dict[Effect, list[str]] = {}
    for step in one.steps:
        if step is not decisive:
            found.setdefault(step.effect, []).append(one.axis.labels[step.after])
    for effect, labels in found.items():
        what = "another error" if effect is Effect.ENDING else TITLES[effect].partition(":")[0]
        yield f"{what} in {', '.join(labels)}"


def since(one: ComparedCase, step: UpgradeStep) -> str:
    """Return the release of a change; both sides where releases between could not be tried.

    Args:
        one: The case.
        step: The change.
    """
    labels = one.axis.labels
    if step.after - step.before == 1:
        return f"in {labels[step.after]}"
    return f"after {labels[step.before]}, by {labels[step.after]}"


def said(seen: ShownChange) -> str:
    """Return what of a change is shown, in a line.

    Args:
        seen: What it was and is.
    """
    name = COST_METRICS.get(seen.artifact, seen.artifact)
    what = "" if seen.artifact in {"ending", "value"} else f"{name}: "
    return f"{what}{seen.before} -> {seen.after}"


def render_asides(upgraded: UpgradeResult) -> Iterator[str]:
    """Yield the cases that could not be compared, and the number of jobs.

    Args:
        upgraded: The upgrade.
    """
    for one in upgraded.compared:
        if one.flaky:
            yield f"flaky: {one.case.id} on {one.axis.platform}: {sanitize(one.flaky)}"
    refused = (one.refused for one in upgraded.compared if one.refused)
    yield from _render_reasons("not compared", upgraded.noun, refused)
    alike = filter(None, map(failure, upgraded.whole))
    yield from _render_reasons("fails at both ends alike", upgraded.noun, alike)
    yield from _render_unclear(upgraded)
    for entry in upgraded.left_out:
        yield f"left out {entry.cell}: {sanitize(entry.reason)}"
    releases = max(len(axis.cells) for axis in upgraded.axes)
    every = f"all {releases} releases" if releases > ENDS else "both ends"
    yield f"{upgraded.jobs:,} jobs tried, of {upgraded.every_job:,} on {every}"


def failure(one: ComparedCase) -> str:
    """Return how a case fails that is unchanged, and fails for no reason that it declares.

    Args:
        one: The case.
    """
    if one.whole is None or one.effect is not Effect.UNCHANGED:
        return ""
    record = one.whole.after.record
    if record.outcome is Outcome.OK or record.conformance is Conformance.CONFORMS:
        return ""
    if record.verdict is Verdict.KNOWN:  # as a test says itself
        return ""
    cell = one.axis.cells[-1]
    declared = select_deviations(one.case, cell.release, cell.cell.platform, cell.versions)
    return "" if declared else shorten(format_ending(record))


def _render_unclear(upgraded: UpgradeResult) -> Iterator[str]:
    """Yield of how many changes the package is not known that made them, and how it is found."""
    if every := sum(1 for _ in unclear(upgraded, frozenset(Effect))):
        breaking = sum(1 for _ in unclear(upgraded, BREAKING))
        how = f"--blame asks of {breaking}, " if breaking else ""
        yield f"which package: not asked of {plural(every, 'change')}; {how}--blame-all of all"


def _render_reasons(what: str, noun: str, reasons: Iterable[str]) -> Iterator[str]:
    for reason, count in Counter(reasons).items():
        yield f"{what}: {plural(count, noun)}: {sanitize(reason)}"


def render_upgrade_markdown(upgraded: UpgradeResult) -> str:
    """Return an upgrade as Markdown: the paragraph, tables of what changed, what it took.

    Args:
        upgraded: The upgrade.
    """
    before, after = upgraded.axes[0].ends
    lines = [f"# {_name_end(before)} to {after}", "", verdict(upgraded), ""]
    for effect, made in group_by_effect(upgraded):
        lines += [f"## {TITLES[effect].capitalize()}", ""]
        lines += ["| since | cases | before | after | package | upstream |"]
        lines += ["|---|---|---|---|---|---|"]
        lines += [*map(_render_row, made), ""]
        for group in made[:MOST] if effect is Effect.BROKEN else ():
            if raised := _render_traceback(group.step, upgraded.root):
                title = f"Traceback of {escape(group.members[0].case.id)}"
                lines += [fold(title, fence("\n".join(raised), LONGEST)), ""]
    lines += [f"- {line}" for line in render_asides(upgraded)]
    return "\n".join(lines) + "\n"


def _render_row(group: UpgradeGroup) -> str:
    first, step = group.members[0], group.step
    seen = show_change(step.change)
    name = COST_METRICS.get(seen.artifact, seen.artifact)
    what = "" if seen.artifact in {"ending", "value"} else f"{name}: "
    cells = (
        since(first, step).removeprefix("in "),
        ", ".join(to_code(one.case.id) for one in group.members),
        to_code(shorten(f"{what}{seen.before}")),
        to_code(shorten(f"{what}{seen.after}")),
        culprit_cell(first, step),
        upstream(first, step),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
