"""What a search for guilty packages found, in words and as data. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.triage.blame.mixture import ABSENT
from conformance.triage.blame.search import Shows
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from conformance.triage.blame.blamed import Blamed, Step
    from conformance.triage.blame.mixture import Moved
    from conformance.triage.blame.search import Guilty, Units

NAMED: Final = 4
"""Packages and mixtures that are named of many."""


def step_line(step: Step, packages: int) -> str:
    """Return a trial in a line, e.g. `after    3 of 8 moved: jax, jaxlib, numpy: KeyError: 'x'`.

    Args:
        step: The trial.
        packages: How many packages differ.
    """
    how = " (from the log)" if step.replayed else " (again)" if step.again else ""
    return f"{step.shows:<8} {_moved(step.units, packages)}: {step.said}{how}"


def _moved(units: Units, packages: int) -> str:
    names = sorted(name for unit in units for name in unit)
    if not names:
        return "nothing moved"
    if len(names) == packages:
        return "all moved"
    return f"{len(names)} of {packages} moved: {_some(names)}"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{more}"


def answer_lines(found: Blamed) -> Iterator[str]:
    """Yield what was found, the answer first.

    Args:
        found: It.
    """
    first, *others = found.found.guilty
    when = Shows.BEFORE if found.reverse else Shows.AFTER
    how = "to blame, together" if len(first.culprits) > 1 else "to blame"
    yield f"{how}: {_named(found.culprits)} ({when}: {found.question.about})"
    yield from _beside(found, first)
    for other in others:
        yield f"to blame as well, each for itself: {_named(found.of(other.culprits))}"
        yield from _beside(found, other)
    yield from _held(found)
    yield from _sure(found)
    yield from _silent(found)
    yield from _together(found)
    spent = sum(r.seconds.get("job", 0.0) for step in found.steps for r in step.samples)
    environments = plural(len({step.cell for step in found.steps}), "environment")
    packages = plural(len(found.packages), "package that differs", "packages that differ")
    yield f"{packages}; {environments}, {spent:.1f} s in them"


def doubts(found: Blamed) -> Iterator[str]:
    """Yield what could not be told for sure: packages that are not told apart, what is flaky.

    Args:
        found: What was found.
    """
    for guilty in found.found.guilty:
        yield from _not_apart(guilty)
    yield from _flaky(found)


def _named(moved: Iterable[Moved]) -> str:
    return ", ".join(map(str, moved))


def _beside(found: Blamed, guilty: Guilty) -> Iterator[str]:
    """Yield what must be moved for a culprit to be, and why; and which could not be told apart."""
    if guilty.beside:
        reasons = _why(found, [name for unit in guilty.culprits for name in unit])
        named = _named(found.of(guilty.beside))
        yield f"  it cannot be moved without {named}: {'; '.join(reasons)}"
    yield from (f"  {line}" for line in _not_apart(guilty))


def _not_apart(guilty: Guilty) -> Iterator[str]:
    if guilty.silent and len(guilty.culprits) > 1:
        names = ", ".join(name for unit in guilty.silent for name in unit)
        yield f"not told apart: without {names} nothing is shown that could be compared"


def _why(found: Blamed, names: Collection[str]) -> list[str]:
    """Return why packages cannot be moved without others."""
    reasons = (found.reasons[name].items() for name in names)
    return list(dict.fromkeys(why for two in reasons for other, why in two if other not in names))


def _held(found: Blamed) -> Iterator[str]:
    """Yield what is shown without the culprits."""
    culprits = [unit for guilty in found.found.guilty for unit in guilty.culprits]
    there = [f"{one.package}=={one.before}" for one in found.of(culprits) if one.before != ABSENT]
    named = f" ({', '.join(there)})" if there else ""
    others = found.moves.dependents(culprits) - set(culprits)
    names = sorted(name for unit in others for name in unit)
    beside = f", with {_some(names)}, which cannot go without it" if names else ""
    said = {
        Shows.BEFORE: "the change is gone",
        Shows.UNKNOWN: "it shows neither of the two",
    }
    yield f"held back{named}{beside}, and all else moved: {said[found.found.held]}"


def _sure(found: Blamed) -> Iterator[str]:
    if found.confirmed:
        yield "confirmed: both sides showed the same once more"
    yield from _flaky(found)


def _flaky(found: Blamed) -> Iterator[str]:
    for units, seen in found.flaky.items():
        counts = ", ".join(f"{shows} {count} of {seen.total()}" for shows, count in seen.items())
        what = _moved(units, len(found.packages))
        yield f"flaky: with {what}, it does not show the same twice: {counts}"


def _silent(found: Blamed) -> Iterator[str]:
    """Yield the mixtures that say nothing, each with the reason; of many the first."""
    silent = [step for step in found.steps if step.shows is Shows.UNKNOWN and not step.again]
    for step in silent[:NAMED]:
        yield f"says nothing: {_moved(step.units, len(found.packages))}: {step.said}"
    if len(silent) > NAMED:
        yield f"says nothing: {len(silent) - NAMED} mixtures more, see above"


def _together(found: Blamed) -> Iterator[str]:
    """Yield the packages that move together, each with the reason."""
    for unit in found.moves.units:
        if len(unit) > 1:
            why = "; ".join(sorted(_inner(found, unit)))
            yield f"always together: {', '.join(unit)}: {why}"


def answer_json(found: Blamed, target: str) -> dict[str, Any]:
    """Return what was found as `--json` holds it.

    Args:
        found: It.
        target: What was tried.
    """
    first, *others = found.found.guilty
    return {
        "target": target,
        "from": found.ends[0].planned.cell.id,
        "to": found.ends[1].planned.cell.id,
        "predicate": {"name": found.question.name, "about": found.question.about,
                      "of": "from" if found.reverse else "to"},
        "culprits": _data(found.culprits),
        "beside": _data(found.of(first.beside)),
        "others": [_data(found.of(other.culprits)) for other in others],
        "not_told_apart": sorted(name for unit in first.silent for name in unit),
        "held_back": str(found.found.held),
        "confirmed": found.confirmed,
        "flaky": [
            {"moved": _names(units), "seen": {str(shows): count for shows, count in seen.items()}}
            for units, seen in found.flaky.items()
        ],
        "packages": _data(found.packages.values()),
        "together": [
            {"packages": list(unit), "reasons": sorted(_inner(found, unit))}
            for unit in found.moves.units
            if len(unit) > 1
        ],
        "unresolved": [
            {"moved": _names(step.units), "cell": step.cell, "reason": step.said}
            for step in found.steps
            if step.shows is Shows.UNKNOWN and not step.again
        ],
        "steps": [
            {"moved": _names(step.units), "cell": step.cell, "verdict": str(step.shows),
             "said": step.said, "again": step.again, "replayed": step.replayed}
            for step in found.steps
        ],
    }  # fmt: skip


def _inner(found: Blamed, unit: Sequence[str]) -> set[str]:
    """Return why the packages of a unit move together."""
    return {why for n in unit for other, why in found.reasons[n].items() if other in unit}


def _names(units: Units) -> list[str]:
    return sorted(name for unit in units for name in unit)


def _data(moved: Iterable[Moved]) -> list[dict[str, str]]:
    return [{"package": one.package, "from": one.before, "to": one.after} for one in moved]
