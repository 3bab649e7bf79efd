"""What a bisection found, in words and as data. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.cells.releases import is_nightly
from conformance.triage.bisect.timeline import timeline
from conformance.triage.questions.predicate import quoted
from conformance.triage.questions.state import BAD, Kind
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.triage.bisect.answer import Answer, Step
    from conformance.triage.bisect.timeline import Stretch
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
    verdict = "" if step.state is None else MARKS[step.state.kind]
    return f"{label:<{max(width, WIDTH)}} {verdict:<8} {step.said}{how}"


def answer_lines(answer: Answer, find: str, axis: str) -> Iterator[str]:
    """Yield what was found, the answer first.

    Args:
        answer: It.
        find: `bad` for the first bad point, `fix` for the first good one.
        axis: What was varied, e.g. `jax`.
    """
    good, bad = (answer.labels[n] for n in (answer.last_good, answer.first_bad))
    about = f"(bad: {_about(answer)})"
    if answer.turned:
        verb = "fixed in" if answer.reverse else "broken since"
        yield f"{verb} {axis} {good if answer.reverse else bad}, {_neighbour(answer)} {about}"
        yield "the end called good is bad, and the one called bad is good: searched the other way"
    elif find == "fix":
        yield f"first good: {axis} {good}, last bad: {bad} {about}"
    else:
        yield f"first bad: {axis} {bad}, last good: {good} {about}"
    good_end = answer.states[answer.ends[0]]
    if good_end.kind is Kind.GOOD and answer.fails(answer.ends[0]):
        said = answer.said(answer.ends[0])
        nowhere = ", and no point works" if answer.works_nowhere else ""
        yield f"the good end fails, too{nowhere}: it ends with {said}"
    if answer.others:
        first, last = (answer.labels[n] for n in (answer.others[0], answer.others[-1]))
        named = first if first == last else f"{first} to {last}"
        yield f"in between, {named}: neither of the two, and the change may lie there"
    if (again := _good_again(answer)) is not None:
        yield f"good again from {answer.labels[again]}"
    yield from _sure(answer)
    for change in answer.also:
        before, after = answer.labels[change.before], answer.labels[change.after]
        yield f"the ends themselves differ from {after} on, not as {before}: --every shows all"
    yield from _timeline_lines(answer)
    yield from _packages(answer, axis)
    yield from _borrowed(answer)
    tried = [record for step in answer.steps for record in step.samples]
    spent = sum(record.seconds.get("job", 0.0) for record in tried)
    probes = sum(len(step.samples) for step in answer.steps if not step.again)
    logged = sum(step.replayed for step in answer.steps if not step.again)
    log = f", {logged} from the log (--fresh ignores it)" if logged else ""
    points = plural(len(answer.points), "point")
    yield f"{plural(probes, 'probe')} of {points}{log}, {spent:.1f} s in them"


def _about(answer: Answer) -> str:
    """Return what bad points do: first what the first of them does."""
    state = answer.states[answer.first_bad]
    if answer.question.name == "exit":
        return f"ends with {answer.said(answer.first_bad)}"
    if state == BAD or answer.question.name != "ending":
        return answer.question.about
    return f"ends with {quoted(state.about)}; the bad end {answer.question.about}"


def _good_again(answer: Answer) -> int | None:
    """Return the first good point after the bad ones, None if it stays bad or is a fix."""
    if answer.reverse:
        return None
    good = (n for n in sorted(answer.states) if n > answer.first_bad)
    return next((n for n in good if answer.states[n].kind is Kind.GOOD), None)


def _neighbour(answer: Answer) -> str:
    if answer.reverse:
        return f"last bad: {answer.labels[answer.first_bad]}"
    return f"last good: {answer.labels[answer.last_good]}"


def _sure(answer: Answer) -> Iterator[str]:
    for point, seen in answer.flaky.items():
        parts = (f"{_state(state)} {count} of {seen.total()}" for state, count in seen.items())
        counts = ", ".join(parts)
        yield f"flaky: {answer.labels[point]} does not show the same twice: {counts}"
    if (more := answer.resampled) is not None:
        yield (
            f"{answer.labels[answer.last_good]} was good {more.runs} of {more.runs} times: by "
            f"chance with a probability of {more.chance:.2g}, if it failed as often as a bad point"
        )
    elif answer.confirmed:
        yield "confirmed: both sides showed the same once more"


def _state(state: State) -> str:
    return f"{state.kind} ({quoted(state.about)})" if state.about else str(state.kind)


def _timeline_lines(answer: Answer) -> Iterator[str]:
    stretches = timeline(answer)
    tried = len(answer.states)
    left = f", of which {tried} were tried" if tried < len(answer.points) else ""
    yield f"timeline of {plural(len(answer.points), 'point')}{left}:"
    names = [_name(answer, one) for one in stretches]
    width = max(map(len, names))
    for name, one in zip(names, stretches, strict=True):
        yield f"  {name:<{width}}  {MARKS[one.state.kind]:<7}  {one.said}"


def _name(answer: Answer, one: Stretch) -> str:
    first, last = answer.labels[one.first], answer.labels[one.last]
    return first if first == last else f"{first} to {last}"


def _packages(answer: Answer, axis: str) -> Iterator[str]:
    """Yield what else changed between both sides of the change."""
    beside = _beside(answer)
    before, after = answer.versions
    same = [f"{name} {before[name]}" for name in beside if before.get(name) == after.get(name)]
    if same:
        yield f"with {', '.join(same[:PACKAGES])} on both sides"
    # What was chosen beside a cell matters to the program: it comes first.
    differ = sorted(moved(before, after, axis), key=lambda package: package[0] not in beside)
    if differ:
        named = ", ".join(f"{name} {a} -> {b}" for name, a, b in differ[:PACKAGES])
        more = f" and {len(differ) - PACKAGES} more" if len(differ) > PACKAGES else ""
        yield f"between the two also: {named}{more}"


def _beside(answer: Answer) -> list[str]:
    """Return the packages that a target has beside those of the cells at the change."""
    cells = (answer.points[answer.main.before], answer.points[answer.main.after])
    pairs = list(zip(answer.versions, cells, strict=True))
    names = {name for versions, _ in pairs for name in versions}
    return sorted(
        name
        for name in names
        if any(versions.get(name) != cell.versions.get(name) for versions, cell in pairs)
    )


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


def answer_json(answer: Answer, target: str, axis: str) -> dict[str, Any]:
    """Return what was found as `--json` holds it.

    Args:
        answer: It.
        target: What was tried.
        axis: What was varied.
    """
    names = answer.labels
    return {
        "target": target,
        "find": "fix" if answer.reverse else "bad",
        "axis": axis,
        "last_good": names[answer.last_good],
        "first_bad": names[answer.first_bad],
        "others": [names[n] for n in answer.others],
        "predicate": {"name": answer.question.name, "about": answer.question.about},
        "confirmed": answer.confirmed,
        "chance": answer.resampled.chance if answer.resampled else None,
        "flaky": [
            {"version": names[n], "seen": {_state(s): count for s, count in seen.items()}}
            for n, seen in answer.flaky.items()
        ],
        "timeline": [
            {"first": names[one.first], "last": names[one.last], "said": one.said,
             "verdict": str(one.state.kind), "tried": one.tried}
            for one in timeline(answer)
        ],
        "changes": [
            {
                "before": names[change.before],
                "after": names[change.after],
                "unknown": [names[n] for n in change.unknown],
            }
            for change in answer.changes
        ],
        "steps": [_step(step, names[step.point]) for step in answer.steps],
    }  # fmt: skip


def _step(step: Step, name: str) -> dict[str, Any]:
    verdict = "" if step.state is None else str(step.state.kind)
    return {
        "version": name, **_seen(step.samples), "said": step.said, "verdict": verdict,
        "again": step.again, "replayed": step.replayed,
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
