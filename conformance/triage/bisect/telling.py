"""What a bisection found, in words and as data. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.cells.releases import is_nightly
from conformance.triage.questions.predicate import quoted
from conformance.triage.questions.state import Kind
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.triage.bisect.bisection import Answer, Step
    from conformance.triage.bisect.search import Change
    from conformance.triage.questions.state import State

MARKS: Final = {Kind.GOOD: "good", Kind.BAD: "bad", Kind.OTHER: "other", Kind.UNKNOWN: "unknown"}
WIDTH: Final = 10
"""Least room for what a point is called."""
PACKAGES: Final = 8
"""Packages of the day that are named."""


def step_line(step: Step, label: str, width: int = 0) -> str:
    """Return a probe in a line, e.g. `0.6.0     bad      TypeError: ...`.

    Args:
        step: The probe.
        label: What its point is called.
        width: Length of the longest label.
    """
    how = " (from the log)" if step.replayed else " (again)" if step.again else ""
    return f"{label:<{max(width, WIDTH)}} {MARKS[step.state.kind]:<8} {step.said}{how}"


def answer_lines(answer: Answer, find: str, axis: str) -> Iterator[str]:
    """Yield what was found, the answer first.

    Args:
        answer: It.
        find: `bad` for the first bad point, `fix` for the first good one.
        axis: What was varied, e.g. `jax`.
    """
    good, bad = (answer.labels[n] for n in (answer.last_good, answer.first_bad))
    named = f"first bad: {axis} {bad}, last good: {good}"
    if find == "fix":
        named = f"first good: {axis} {good}, last bad: {bad}"
    yield f"{named} (bad: {answer.question.about})"
    if answer.others:
        first, last = (answer.labels[n] for n in (answer.others[0], answer.others[-1]))
        yield f"in between, {first if first == last else f'{first} to {last}'}: neither of the two"
    yield from _sure(answer)
    if len(answer.changes) > 1:
        yield f"{plural(len(answer.changes), 'change')}:"
    for change in answer.changes:
        yield f"  {_told(answer, change)}"
    yield from _packages(answer, axis)
    yield from _borrowed(answer)
    tried = [record for step in answer.steps for record in step.samples]
    spent = sum(record.seconds.get("job", 0.0) for record in tried)
    probes = sum(len(step.samples) for step in answer.steps if not step.again)
    points = plural(len(answer.points), "point")
    yield f"{plural(probes, 'probe')} of {points}, {spent:.1f} s in them"


def _sure(answer: Answer) -> Iterator[str]:
    if answer.confirmed:
        yield "confirmed: both sides showed the same once more"
    for point, seen in answer.flaky.items():
        parts = (f"{_state(state)} {count} of {seen.total()}" for state, count in seen.items())
        counts = ", ".join(parts)
        yield f"flaky: {answer.labels[point]} does not show the same twice: {counts}"


def _state(state: State) -> str:
    return f"{state.kind} ({quoted(state.about)})" if state.about else str(state.kind)


def _told(answer: Answer, change: Change) -> str:
    before, after = (answer.labels[n] for n in (change.before, change.after))
    seen = {step.point: step.said for step in reversed(answer.steps)}
    one, other = seen[change.before], seen[change.after]
    states = answer.states[change.before], answer.states[change.after]
    said = f"{one} -> {other}" if one != other else " -> ".join(map(_state, states))
    between = [answer.labels[n] for n in change.unknown]
    around = f"; stepped around {', '.join(between)}" if between else ""
    return f"{before} -> {after}: {said}{around}"


def _packages(answer: Answer, axis: str) -> Iterator[str]:
    """Yield what else changed between both sides of the change."""
    one, other = (answer.points[n].versions for n in (answer.main.before, answer.main.after))
    differ = moved(one, other, axis)
    if differ:
        named = ", ".join(f"{name} {a} -> {b}" for name, a, b in differ[:PACKAGES])
        more = f" and {len(differ) - PACKAGES} more" if len(differ) > PACKAGES else ""
        yield f"between the two also: {named}{more}"


def _borrowed(answer: Answer) -> Iterator[str]:
    """Yield the nights whose jaxlib is of another one."""
    for point in sorted(answer.states):
        jax, jaxlib = (answer.points[point].versions.get(name) for name in ("jax", "jaxlib"))
        if jax and jaxlib and is_nightly(jax) and jaxlib != jax:
            yield f"{jax} went with jaxlib {jaxlib}: there is none of that night"


def moved(
    one: Mapping[str, str], other: Mapping[str, str], but: str = "jax"
) -> list[tuple[str, str, str]]:
    """Return the packages that differ, with both versions.

    Args:
        one: Version by package.
        other: The same of another cell.
        but: The package that is searched.
    """
    names = sorted({*one, *other} - {but})
    return [
        (name, one.get(name, "none"), other.get(name, "none"))
        for name in names
        if one.get(name) != other.get(name)
    ]


def answer_json(answer: Answer, target: str, find: str, axis: str) -> dict[str, Any]:
    """Return what was found as `--json` holds it.

    Args:
        answer: It.
        target: What was tried.
        find: `bad` or `fix`.
        axis: What was varied.
    """
    names = answer.labels
    return {
        "target": target,
        "find": find,
        "axis": axis,
        "last_good": names[answer.last_good],
        "first_bad": names[answer.first_bad],
        "others": [names[n] for n in answer.others],
        "predicate": {"name": answer.question.name, "about": answer.question.about},
        "confirmed": answer.confirmed,
        "flaky": [
            {"version": names[n], "seen": {_state(s): count for s, count in seen.items()}}
            for n, seen in answer.flaky.items()
        ],
        "changes": [
            {
                "before": names[change.before],
                "after": names[change.after],
                "unknown": [names[n] for n in change.unknown],
            }
            for change in answer.changes
        ],
        "steps": [
            {"version": names[step.point], **_seen(step.samples), "said": step.said,
             "verdict": str(step.state.kind), "again": step.again, "replayed": step.replayed}
            for step in answer.steps
        ],
    }  # fmt: skip


def _seen(samples: Sequence[Record]) -> dict[str, Any]:
    last = samples[-1]
    return {
        "cell": last.cell,
        "outcome": str(last.outcome),
        "signature": "" if last.error is None else last.error.signature,
        "samples": [
            {"seconds": record.seconds, "max_rss_bytes": record.max_rss_bytes} for record in samples
        ],
    }
