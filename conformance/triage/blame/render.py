"""The answer of a blame in words and as JSON. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.search.answers import (
    CONFIRMED,
    count_verdicts,
    describe_origin,
    format_seconds,
    format_some,
    make_predicate_json,
    render_flaky,
)
from conformance.search.axes import ABSENT
from conformance.search.ddmin import SetResult
from conformance.search.predicates import PointKind
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from conformance.search.answers import SearchStep
    from conformance.search.axes import PackageMove
    from conformance.search.ddmin import MinimalSet
    from conformance.search.predicates import PointState
    from conformance.triage.blame.blame import BlameAnswer, MovedUnits
    from conformance.triage.blame.mixtures import Unit

NAMED: Final = 4
"""Maximum number of packages or mixtures in a line."""
_LIKE: Final = {PointKind.GOOD: "before", PointKind.BAD: "after"}
"""The environment that a mixture behaves like."""


def _format_verdict(state: PointState | None) -> str:
    return "unknown" if state is None else _LIKE.get(state.kind, "unknown")


def format_step(step: SearchStep[MovedUnits], packages: int) -> str:
    """Return a step in a line, e.g. `after    3 of 8 moved: jax, jaxlib, numpy: KeyError: 'x'`.

    Args:
        step: The step.
        packages: Number of packages that differ.
    """
    moved = _format_moved(step.point, packages)
    return f"{_format_verdict(step.state):<8} {moved}: {step.summary}{describe_origin(step)}"


def _format_moved(units: MovedUnits, packages: int) -> str:
    names = _list_names(units)
    if not names:
        return "nothing moved"
    if len(names) == packages:
        return "all moved"
    return f"{len(names)} of {packages} moved: {format_some(names, NAMED)}"


def _list_names(units: Iterable[Unit]) -> list[str]:
    return sorted(name for unit in units for name in unit)


def render_answer(answer: BlameAnswer) -> Iterator[str]:
    """Yield the lines of an answer, the culprits first."""
    first, *others = answer.guilty
    when = "before" if answer.reverse else "after"
    how = "to blame, together" if len(first.culprits) > 1 else "to blame"
    yield f"{how}: {_format_moves(answer.culprits)} ({when}: {answer.predicate.about})"
    yield from _render_needed(answer, first)
    for other in others:
        named = _format_moves(answer.list_packages(other.culprits))
        yield f"also sufficient alone: {named}"
        yield from _render_needed(answer, other)
    yield from _render_held(answer)
    if answer.is_confirmed:
        yield CONFIRMED
    yield from _list_flaky(answer)
    yield from _render_unresolved(answer)
    for unit, reasons in _find_inseparable(answer):
        yield f"always together: {', '.join(unit)}: {'; '.join(reasons)}"
    environments = plural(len({step.samples[-1].cell for step in answer.steps}), "environment")
    packages = plural(len(answer.mixtures.packages), "package that differs", "packages that differ")
    yield f"{packages}; {environments}, {format_seconds(answer.steps)}"


def list_doubts(answer: BlameAnswer) -> Iterator[str]:
    """Yield the doubts about an answer: inseparable packages, flaky mixtures."""
    for guilty in answer.guilty:
        yield from _render_unresolved_units(guilty)
    yield from _list_flaky(answer)


def _format_moves(moved: Iterable[PackageMove]) -> str:
    return ", ".join(map(str, moved))


def _render_needed(answer: BlameAnswer, guilty: MinimalSet[Unit]) -> Iterator[str]:
    """Yield the packages that culprits need, and culprits that cannot be distinguished."""
    if guilty.needed:
        reasons = _list_reasons(answer, [name for unit in guilty.culprits for name in unit])
        named = _format_moves(answer.list_packages(guilty.needed))
        yield f"  it cannot be moved without {named}: {'; '.join(reasons)}"
    yield from (f"  {line}" for line in _render_unresolved_units(guilty))


def _render_unresolved_units(guilty: MinimalSet[Unit]) -> Iterator[str]:
    if guilty.unresolved and len(guilty.culprits) > 1:
        names = ", ".join(name for unit in guilty.unresolved for name in unit)
        yield f"not separated: without {names} nothing is shown that could be compared"


def _list_reasons(answer: BlameAnswer, names: Collection[str]) -> list[str]:
    """Return why packages cannot be moved without others."""
    # Reasons within a unit are left out: its packages move together anyway.
    reasons = (answer.mixtures.reasons[name].items() for name in names)
    return list(dict.fromkeys(why for two in reasons for other, why in two if other not in names))


def _render_held(answer: BlameAnswer) -> Iterator[str]:
    """Yield the result without the culprits."""
    culprits = [unit for guilty in answer.guilty for unit in guilty.culprits]
    # A package that the old environment lacks cannot be pinned to its old version.
    moved = [move for move in answer.list_packages(culprits) if move.before != ABSENT]
    pins = ", ".join(f"{move.package}=={move.before}" for move in moved)
    names = _list_names(answer.mixtures.units.add_dependents(culprits) - set(culprits))
    others = f", with {format_some(names, NAMED)}, which cannot go without it" if names else ""
    gone = answer.without_culprits is SetResult.NOT_ENOUGH
    result = "the change is gone" if gone else "it shows neither of the two"
    yield f"held back{f' ({pins})' if pins else ''}{others}, and all other packages moved: {result}"


def _list_flaky(answer: BlameAnswer) -> Iterator[str]:
    for units, seen in answer.flaky.items():
        moved = _format_moved(units, len(answer.mixtures.packages))
        yield render_flaky(f"with {moved}, it", count_verdicts(seen, _format_verdict))


def _find_unresolved(answer: BlameAnswer) -> list[SearchStep[MovedUnits]]:
    return [
        step for step in answer.steps if _format_verdict(step.state) == "unknown" and not step.again
    ]


def _render_unresolved(answer: BlameAnswer) -> Iterator[str]:
    """Yield the mixtures without a result, each with the reason; only the first of many."""
    steps = _find_unresolved(answer)
    for step in steps[:NAMED]:
        moved = _format_moved(step.point, len(answer.mixtures.packages))
        yield f"says nothing: {moved}: {step.summary}"
    # Packages that do not work together can make most mixtures fail.
    if len(steps) > NAMED:
        yield f"says nothing: {len(steps) - NAMED} mixtures more, see above"


def _find_inseparable(answer: BlameAnswer) -> Iterator[tuple[Unit, list[str]]]:
    """Yield the packages that move together, with the reasons."""
    for unit in answer.mixtures.units.order:
        if len(unit) > 1:
            needs = (answer.mixtures.reasons[name].items() for name in unit)
            yield unit, sorted({why for two in needs for other, why in two if other in unit})


def make_answer_json(answer: BlameAnswer, target: str) -> dict[str, Any]:
    """Return an answer as `--json` has it.

    Args:
        answer: The answer.
        target: The name of the target.
    """
    first, *others = answer.guilty
    before, after = answer.mixtures.ends
    return {
        "target": target,
        "from": before.planned.cell.id,
        "to": after.planned.cell.id,
        "predicate": {**make_predicate_json(answer), "of": "from" if answer.reverse else "to"},
        "culprits": _make_moves_json(answer.culprits),
        "beside": _make_moves_json(answer.list_packages(first.needed)),
        "others": [_make_moves_json(answer.list_packages(other.culprits)) for other in others],
        "not_told_apart": _list_names(first.unresolved),
        "held_back": "before" if answer.without_culprits is SetResult.NOT_ENOUGH else "unknown",
        "confirmed": answer.is_confirmed,
        "flaky": [
            {"moved": _list_names(units), "seen": dict(count_verdicts(seen, _format_verdict))}
            for units, seen in answer.flaky.items()
        ],
        "packages": _make_moves_json(answer.mixtures.packages.values()),
        "together": [
            {"packages": list(unit), "reasons": reasons}
            for unit, reasons in _find_inseparable(answer)
        ],
        "unresolved": [
            {"moved": _list_names(step.point), "cell": step.samples[-1].cell,
             "reason": step.summary}
            for step in _find_unresolved(answer)
        ],
        "steps": [
            {"moved": _list_names(step.point), "cell": step.samples[-1].cell,
             "verdict": _format_verdict(step.state), "said": step.summary, "again": step.again,
             "replayed": step.replayed}
            for step in answer.steps
        ],
    }  # fmt: skip


def _make_moves_json(moved: Iterable[PackageMove]) -> list[dict[str, str]]:
    return [{"package": move.package, "from": move.before, "to": move.after} for move in moved]
