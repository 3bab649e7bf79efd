"""The answer of a bisection in words and as JSON. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.cells.releases import is_nightly
from conformance.search.answers import (
    CONFIRMED,
    count_verdicts,
    describe_origin,
    format_seconds,
    format_some,
    make_predicate_json,
    render_flaky,
)
from conformance.search.axes import find_package_moves
from conformance.search.equivalence import shorten
from conformance.search.point_predicates import MetricPredicate, measure_distance
from conformance.search.predicates import BAD, PointKind
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.search.answers import SearchStep
    from conformance.search.predicates import PointState
    from conformance.triage.bisect.bisection import BisectAnswer

WIDTH: Final = 10
"""Minimum width of a label."""
PACKAGES: Final = 8
"""Maximum number of packages in a line."""


def format_step(step: SearchStep[int], label: str, width: int = 0) -> str:
    """Return a step in a line, e.g. `0.6.0     bad      TypeError: ...`.

    Args:
        step: The step.
        label: Name of the point.
        width: Length of the longest label.
    """
    verdict = "" if step.state is None else str(step.state.kind)
    return f"{label:<{max(width, WIDTH)}} {verdict:<8} {step.summary}{describe_origin(step)}"


def render_answer(answer: BisectAnswer, find: str, axis: str) -> Iterator[str]:
    """Yield the lines of an answer, the main change first.

    Args:
        answer: The answer.
        find: `bad` for the first bad point, `fix` for the first good point.
        axis: The name of the axis, e.g. `jax`.
    """
    good, bad = (answer.labels[n] for n in (answer.last_good, answer.first_bad))
    about = f"(bad: {_describe_bad(answer)})"
    if answer.swapped:
        verb = "fixed in" if answer.reverse else "broken since"
        changed = good if answer.reverse else bad
        yield f"{verb} {axis} {changed}, {_format_neighbour(answer)} {about}"
        yield "the end called good is bad, and the one called bad is good: searched the other way"
    elif find == "fix":
        yield f"first good: {axis} {good}, last bad: {bad} {about}"
    else:
        yield f"first bad: {axis} {bad}, last good: {good} {about}"
    end = answer.good_end
    # A good end that fails was compared by its failure, which the user must not take for success.
    if answer.states[end].kind is PointKind.GOOD and answer.fails(end):
        nowhere = ", and no point works" if answer.works_nowhere else ""
        yield f"the good end fails, too{nowhere}: it ends with {answer.get_summary(end)}"
    if answer.others:
        first, last = (answer.labels[n] for n in (answer.others[0], answer.others[-1]))
        named = first if first == last else f"{first} to {last}"
        yield f"in between, {named}: neither of the two, and the change may lie there"
    if (again := _find_good_again(answer)) is not None:
        yield f"good again from {answer.labels[again]}"
    yield from _render_confidence(answer)
    for change in answer.also:
        before, after = answer.labels[change.before], answer.labels[change.after]
        yield f"the ends themselves differ from {after} on, not as {before}: --every shows all"
    yield from _render_stretch(answer)
    yield from _render_timeline(answer)
    yield from _render_packages(answer, axis)
    yield from _render_borrowed(answer)
    # Confirmations are not counted: the number is the cost of the search.
    trials = sum(len(step.samples) for step in answer.steps if not step.again)
    logged = sum(step.replayed for step in answer.steps if not step.again)
    log = f", {logged} from the log (--fresh ignores it)" if logged else ""
    points = plural(len(answer.points), "point")
    yield f"{plural(trials, 'trial')} for {points}{log}, {format_seconds(answer.steps)}"


def _describe_bad(answer: BisectAnswer) -> str:
    """Return the behaviour of bad points, beginning with the first bad point."""
    state = answer.states[answer.first_bad]
    if answer.predicate.name == "exit":
        return f"ends with {answer.get_summary(answer.first_bad)}"
    if state == BAD or answer.predicate.name != "ending":
        return answer.predicate.about
    return f"ends with {shorten(state.about)}; the bad end {answer.predicate.about}"


def _find_good_again(answer: BisectAnswer) -> int | None:
    """Return the first good point after the bad points, None if there is none, or for a fix."""
    if answer.reverse:
        return None
    good = (n for n in sorted(answer.states) if n > answer.first_bad)
    return next((n for n in good if answer.states[n].kind is PointKind.GOOD), None)


def _format_neighbour(answer: BisectAnswer) -> str:
    if answer.reverse:
        return f"last bad: {answer.labels[answer.first_bad]}"
    return f"last good: {answer.labels[answer.last_good]}"


def _render_confidence(answer: BisectAnswer) -> Iterator[str]:
    for point, seen in answer.flaky.items():
        yield render_flaky(answer.labels[point], count_verdicts(seen, _format_state))
    if (more := answer.resampled) is not None:
        yield (
            f"{answer.labels[answer.last_good]} was good {more.runs} of {more.runs} times: by "
            f"chance with a probability of {more.chance:.2g}, if it failed as often as a bad point"
        )
    elif answer.is_confirmed:
        yield CONFIRMED


def _format_state(state: PointState) -> str:
    return f"{state.kind} ({shorten(state.about)})" if state.about else str(state.kind)


def _render_stretch(answer: BisectAnswer) -> Iterator[str]:
    """Yield the points that differ from the good end as well, but less than the bad points."""
    predicate = answer.predicate
    if answer.stretch is None or not isinstance(predicate, MetricPredicate):
        return
    first, last, middle = answer.stretch
    ends = " to ".join(dict.fromkeys((answer.labels[first], answer.labels[last])))
    times = measure_distance(middle, predicate.good)
    yield (
        f"{ends}: {predicate.metric.render(middle)} at one sample each, {times:.3g} times the good "
        f"end, too; to date it, name {answer.labels[last]} as the bad end"
    )


def _render_timeline(answer: BisectAnswer) -> Iterator[str]:
    tried = len(answer.states)
    left = f", {tried} tested" if tried < len(answer.points) else ""
    yield f"timeline of {plural(len(answer.points), 'point')}{left}:"
    rows = []
    for entry in answer.timeline:
        ends = dict.fromkeys((answer.labels[entry.first], answer.labels[entry.last]))
        rows.append((" to ".join(ends), entry))
    width = max(len(name) for name, _ in rows)
    for name, entry in rows:
        yield f"  {name:<{width}}  {entry.state.kind:<7}  {entry.summary}"


def _render_packages(answer: BisectAnswer, axis: str) -> Iterator[str]:
    """Yield the other packages on both sides of the change."""
    before, after = answer.versions
    cells = (answer.points[answer.main.before], answer.points[answer.main.after])
    # Packages that the target has in addition to those of the cells.
    own = {
        name
        for versions, cell in zip(answer.versions, cells, strict=True)
        for name in {*before, *after}
        if versions.get(name) != cell.versions.get(name)
    }
    same = [f"{n} {before[n]}" for n in sorted(own) if before.get(n) == after.get(n)]
    if same:
        yield f"with {', '.join(same[:PACKAGES])} on both sides"
    # The program's own packages are the likeliest to matter: they come first.
    differ = [move for move in find_package_moves(before, after) if move.package != axis]
    differ.sort(key=lambda move: move.package not in own)
    if differ:
        yield f"also different between the two: {format_some(list(map(str, differ)), PACKAGES)}"


def _render_borrowed(answer: BisectAnswer) -> Iterator[str]:
    """Yield the nightlies with a jaxlib of another date."""
    for point in sorted(answer.states):
        jax, jaxlib = (answer.points[point].versions.get(name) for name in ("jax", "jaxlib"))
        # Nightlies of jax and jaxlib are built apart, and one of them may be missing on a day.
        if jax and jaxlib and is_nightly(jax) and jaxlib != jax:
            yield f"{jax} went with jaxlib {jaxlib}: no run of that night exists"


def make_answer_json(answer: BisectAnswer, target: str, axis: str) -> dict[str, Any]:
    """Return an answer as `--json` has it.

    Args:
        answer: The answer.
        target: The name of the target.
        axis: The name of the axis.
    """
    names = answer.labels
    return {
        "target": target,
        "find": "fix" if answer.reverse else "bad",
        "axis": axis,
        "last_good": names[answer.last_good],
        "first_bad": names[answer.first_bad],
        "others": [names[n] for n in answer.others],
        "predicate": make_predicate_json(answer),
        "confirmed": answer.is_confirmed,
        "chance": answer.resampled.chance if answer.resampled else None,
        "flaky": [
            {"version": names[n], "seen": dict(count_verdicts(seen, _format_state))}
            for n, seen in answer.flaky.items()
        ],
        "timeline": [
            {"first": names[entry.first], "last": names[entry.last], "said": entry.summary,
             "verdict": str(entry.state.kind), "tried": entry.tried}
            for entry in answer.timeline
        ],
        "changes": [
            {
                "before": names[change.before],
                "after": names[change.after],
                "unknown": [names[n] for n in change.unknown],
            }
            for change in answer.changes
        ],
        "steps": [_make_step_json(step, names[step.point]) for step in answer.steps],
    }  # fmt: skip


def _make_step_json(step: SearchStep[int], name: str) -> dict[str, Any]:
    last = step.samples[-1]
    return {
        "version": name,
        "cell": last.cell,
        "outcome": str(last.outcome),
        "signature": "" if last.error is None else last.error.signature,
        "samples": [
            {"seconds": sample.seconds, "max_rss_bytes": sample.max_rss_bytes}
            for sample in step.samples
        ],
        "said": step.summary,
        "verdict": "" if step.state is None else str(step.state.kind),
        "again": step.again,
        "replayed": step.replayed,
    }
