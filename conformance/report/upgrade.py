"""What an upgrade does: a paragraph to paste, what breaks and changes, since which release."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from conformance.judge.deviation import applicable
from conformance.report.markup import code
from conformance.report.text import listed, visible
from conformance.triage.questions.predicate import quoted
from conformance.triage.upgrade.effect import BREAKING, FIGURES, Effect, told

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.model.run import Exclusion
    from conformance.triage.upgrade.effect import Told
    from conformance.triage.upgrade.upgrading import Axis, Compared, Step

WORDS: Final = {
    Effect.BROKEN: ("breaks", "break"),
    Effect.WRONG: ("is silently wrong", "are silently wrong"),
    Effect.VALUE: ("silently changes its value", "silently change their value"),
    Effect.FACTS: ("changes what is compiled", "change what is compiled"),
    Effect.LARGER: ("takes more work or memory", "take more work or memory"),
    Effect.ENDING: ("fails otherwise", "fail otherwise"),
    Effect.FIXED: ("is fixed", "are fixed"),
    Effect.UNCHANGED: ("is unchanged", "are unchanged"),
}
"""What is said of one case, and of more."""
TITLES: Final = {
    Effect.BROKEN: "broken",
    Effect.WRONG: "silently wrong",
    Effect.VALUE: "silently changed value",
    Effect.FACTS: "changed facts: collectives, placement, memory, donation, shardings",
    Effect.LARGER: "more work or memory, by XLA's analysis",
    Effect.ENDING: "fails as before, with another error",
    Effect.FIXED: "fixed",
    Effect.UNCHANGED: "changed on the way, and back",
}
_JAX: Final = re.compile(r"jax|jaxlib|libtpu|jax-(cuda|rocm)\d*-(plugin|pjrt)")
"""Packages that are released together."""
_OF_JAX: Final = frozenset({"ml-dtypes", "numpy", "opt-einsum", "scipy"})
"""What every case imports, since jax does."""
MOST: Final = 8
"""Groups of one effect that are shown where not all are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgraded:
    """An upgrade, as it is told.

    Attributes:
        compared: Every case on every platform.
        left_out: Releases that could not be tried, and why.
        jobs: Jobs that were tried.
    """

    compared: tuple[Compared, ...]
    left_out: tuple[Exclusion, ...] = ()
    jobs: int = 0

    @property
    def axes(self) -> tuple[Axis, ...]:
        """What lies between both ends, by platform."""
        return tuple({one.axis.platform: one.axis for one in self.compared}.values())

    @property
    def whole(self) -> tuple[Compared, ...]:
        """What could be compared."""
        return tuple(one for one in self.compared if one.whole is not None)

    @property
    def breaks(self) -> bool:
        """Whether something breaks, or silently computes something else."""
        return any(one.effect in BREAKING for one in self.whole)

    @property
    def every_job(self) -> int:
        """Jobs that there would be with every case on every release."""
        return sum(len(one.axis.cells) for one in self.whole)


@dataclass(frozen=True, slots=True)
class Group:
    """Cases that one release changed in the same way."""

    effect: Effect
    members: tuple[Compared, ...]

    @property
    def step(self) -> Step:
        """The change, of the first of them."""
        step = self.members[0].decisive
        assert step is not None  # noqa: S101 - what did not change is in no group
        return step

    @property
    def platforms(self) -> tuple[str, ...]:
        """Where it is seen."""
        return tuple(dict.fromkeys(one.axis.platform for one in self.members))


def groups(upgraded: Upgraded) -> list[Group]:
    """Return what changed, put together by effect, release and root cause; the gravest first.

    Args:
        upgraded: The upgrade.
    """
    found: dict[tuple[Any, ...], list[Compared]] = {}
    for one in upgraded.whole:
        if (step := one.decisive) is not None:
            key = (one.effect, one.axis.labels[step.before], one.axis.labels[step.after])
            found.setdefault((*key, *_cause(told(step.change))), []).append(one)
    made = [Group(effect, tuple(members)) for (effect, *_), members in found.items()]
    order = list(Effect)
    return sorted(made, key=lambda g: (order.index(g.effect), g.step.after, -len(g.members)))


def _cause(seen: Told) -> tuple[str, ...]:
    """Return what of a change is the same for all that one cause changed."""
    if seen.artifact == "ending":
        return seen
    if seen.artifact in FIGURES:
        return ("figures",)
    return (seen.artifact,)


def verdict(upgraded: Upgraded) -> str:
    """Return a paragraph that says it all, without a line break.

    Args:
        upgraded: The upgrade.
    """
    before, after = upgraded.axes[0].ends
    many = len(upgraded.whole)
    found = Counter(one.effect for one in upgraded.whole)
    said = [_phrase(effect, found[effect]) for effect in Effect if found[effect]]
    where = " and ".join(axis.platform for axis in upgraded.axes)
    text = f"From {before} to {after} on {where}, of {_many(many, 'case')} {_joined(said)}."
    graves = [g for g in groups(upgraded) if g.effect in BREAKING]
    if graves:
        first = min(graves, key=lambda group: group.step.after)
        label = first.members[0].axis.labels[first.step.after]
        text += f" The first that is not what it was comes with {label}."
        silent = sum(found[effect] for effect in (Effect.WRONG, Effect.VALUE))
        text += f" {silent} of them without any error." if silent else ""
    else:
        text += " Nothing breaks."
    if unsure := [one for one in upgraded.compared if one.flaky]:
        text += f" {_many(len(unsure), 'case')} did not do the same twice, and count for nothing."
    return text


def _phrase(effect: Effect, count: int) -> str:
    return f"{count} {WORDS[effect][count > 1]}"


def _joined(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count:,} {what}s"


def upgrade_lines(upgraded: Upgraded, *, every: bool = False) -> Iterator[str]:
    """Yield what is said of an upgrade, in lines.

    Args:
        upgraded: The upgrade.
        every: Whether every case is named, and every group shown.
    """
    yield verdict(upgraded)
    made = groups(upgraded)
    for effect in Effect:
        of_effect = [group for group in made if group.effect is effect]
        if not of_effect:
            continue
        count = sum(len(group.members) for group in of_effect)
        yield ""
        yield f"{TITLES[effect]}: {count}"
        shown = of_effect if every or effect in BREAKING else of_effect[:MOST]
        for group in shown:
            yield from (f"  {line}" for line in group_lines(group, every=every))
        if len(shown) < len(of_effect):
            yield f"  and {len(of_effect) - len(shown)} more; -v shows them"
    yield from _asides(upgraded)


def group_lines(group: Group, *, every: bool = False) -> Iterator[str]:
    """Yield what is said of one group.

    Args:
        group: The group.
        every: Whether every case is named.
    """
    first, step = group.members[0], group.step
    names = [one.case.id for one in group.members]
    many = f" ({len(names)} cases)" if len(names) > 1 else ""
    yield f"{_when(first, step)}{many}: {_said(told(step.change))}"
    yield f"  {', '.join(names) if every else listed(names)}"
    if others := [other for other in first.steps if other is not step]:
        yield f"  also {'; '.join(f'{_when(first, o)} {o.effect}' for o in others)}"
    if issue := upstream(first, step):
        yield f"  upstream: {issue}"
    if not culprit(first, step):
        packages = suspects(first, step)
        yield f"  other packages differ, too: {_versions(packages)}"
    yield f"  {command(first, step)}"


def _when(one: Compared, step: Step) -> str:
    """Return the release of a change; both sides where releases between could not be tried."""
    labels = one.axis.labels
    if step.after - step.before == 1:
        return f"in {labels[step.after]}"
    return f"after {labels[step.before]}, by {labels[step.after]}"


def _said(seen: Told) -> str:
    what = (
        ""
        if seen.artifact in {"ending", "value"}
        else f"{FIGURES.get(seen.artifact, seen.artifact)} "
    )
    return visible(f"{what}{seen.before} -> {seen.after}")


def _versions(packages: Mapping[str, tuple[str, str]]) -> str:
    return ", ".join(f"{name} {a} -> {b}" for name, (a, b) in packages.items())


def _asides(upgraded: Upgraded) -> Iterator[str]:
    """Yield what could not be said, and what it took."""
    yield ""
    for one in upgraded.compared:
        if one.flaky:
            yield f"flaky: {one.case.id} on {one.axis.platform}: {visible(one.flaky)}"
    refused = Counter(one.refused for one in upgraded.compared if one.refused)
    for reason, count in refused.items():
        yield f"not compared: {_many(count, 'case')}: {visible(reason)}"
    for entry in upgraded.left_out:
        yield f"left out {entry.cell}: {entry.reason}"
    releases = max(len(axis.cells) for axis in upgraded.axes)
    yield (f"{upgraded.jobs:,} jobs told it, of {upgraded.every_job:,} on all {releases} releases")


def suspects(one: Compared, step: Step) -> dict[str, tuple[str, str]]:
    """Return the packages that a change may be due to, with their versions before and after.

    Args:
        one: The case.
        step: The change.
    """
    before, after = (one.axis.cells[place].versions for place in (step.before, step.after))
    found = {}
    for name in sorted({**before, **after}):
        imported = bool(one.case.requires) or bool(_JAX.fullmatch(name)) or name in _OF_JAX
        pair = before.get(name, "none"), after.get(name, "none")
        if imported and pair[0] != pair[1]:
            found[name] = pair
    return found


def culprit(one: Compared, step: Step) -> str:
    """Return the package that made a change, empty where more than one may have.

    Args:
        one: The case.
        step: The change.
    """
    return "jax" if all(map(_JAX.fullmatch, suspects(one, step))) else ""


def upstream(one: Compared, step: Step) -> str:
    """Return the upstream thread that a case names for what a change led to, empty if none.

    Args:
        one: The case.
        step: The change.
    """
    issues = []
    for place in (step.after, step.before):
        planned = one.axis.cells[place]
        declared = applicable(one.case, planned.release, planned.cell.platform, planned.versions)
        issues += [deviation.issue for deviation in declared]
    return next(filter(None, (*issues, one.case.source)), "")


def command(one: Compared, step: Step) -> str:
    """Return a command that shows a change.

    Args:
        one: The case.
        step: The change.
    """
    before, after = (one.axis.cells[place].cell.id for place in (step.before, step.after))
    if step.effect in {Effect.BROKEN, Effect.WRONG, Effect.ENDING}:
        good = one.axis.labels[step.before]
        return f"conformance repro {quote(one.case.id)} --cell {after} --issue --good {good}"
    return f"conformance diff {quote(one.case.id)} --cell {before} --cell {after}"


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


def upgrade_markdown(upgraded: Upgraded) -> str:
    """Return an upgrade as Markdown: the paragraph, tables of what changed, what it took.

    Args:
        upgraded: The upgrade.
    """
    before, after = upgraded.axes[0].ends
    lines = [f"# jax {before} to {after}", "", verdict(upgraded), ""]
    for effect in Effect:
        made = [group for group in groups(upgraded) if group.effect is effect]
        if not made:
            continue
        lines += [f"## {TITLES[effect].capitalize()}", ""]
        lines += ["| since | cases | before | after | upstream |", "|---|---|---|---|---|"]
        lines += [_markdown_row(group) for group in made]
        lines += [""]
    lines += [f"- {line}" for line in _asides(upgraded) if line]
    return "\n".join(lines) + "\n"


def _markdown_row(group: Group) -> str:
    first, step = group.members[0], group.step
    seen = told(step.change)
    what = f"{FIGURES.get(seen.artifact, seen.artifact)}: "
    what = "" if seen.artifact in {"ending", "value"} else what
    names = ", ".join(code(one.case.id) for one in group.members)
    cells = (
        _when(first, step).removeprefix("in "),
        names,
        code(quoted(f"{what}{seen.before}")),
        code(quoted(f"{what}{seen.after}")),
        upstream(first, step),
    )
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
