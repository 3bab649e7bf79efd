"""Rewrites that are the same in many places are one pattern, with a count and an example."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from conformance.ir.change import Kind, Severity
from conformance.ir.edits import Delta, Rewrite, Side
from conformance.ir.graph import Tensor
from conformance.ir.vocabulary import COLLECTIVES, CONSTANTS, MOVEMENT, REDUCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable

    from conformance.ir.graph import Instruction


@dataclass(slots=True, kw_only=True)
class Pattern:
    """Rewrites that are alike.

    Attributes:
        kind: What happened.
        severity: What it may mean.
        title: In a few words, e.g. `reduce-window removed`.
        about: What it concerns, e.g. `collective`, `value order`; empty when nothing special.
        rewrites: All of them, the worked example first.
    """

    kind: Kind
    severity: Severity
    title: str
    about: str = ""
    rewrites: list[Rewrite] = field(default_factory=list)


def patterns(found: Iterable[Rewrite]) -> list[Pattern]:
    """Group rewrites by what they do.

    Args:
        found: The rewrites of two modules.

    Returns:
        One pattern for each kind of rewrite, the gravest and most frequent first.
    """
    grouped: dict[Hashable, list[Rewrite]] = {}
    for rewrite in _moved(found):
        grouped.setdefault(_key(rewrite), []).append(rewrite)
    made = [_pattern(alike) for alike in grouped.values()]
    order = list(Severity)
    return sorted(made, key=lambda p: (order.index(p.severity), -len(p.rewrites)))


def _moved(found: Iterable[Rewrite]) -> list[Rewrite]:
    """Join what is gone from one computation with the same that is new in another."""
    rest: list[Rewrite] = []
    gone: dict[Hashable, list[Rewrite]] = {}
    new: list[Rewrite] = []
    for rewrite in found:
        work = _work(rewrite)
        sides = {delta.side for delta in work}
        if sides == {Side.REMOVED}:
            gone.setdefault(_labels(work), []).append(rewrite)
        elif sides == {Side.ADDED}:
            new.append(rewrite)
        else:
            rest.append(rewrite)
    for rewrite in new:
        same = gone.get(_labels(_work(rewrite)), [])
        other = next((o for o in same if _place(o) != _place(rewrite)), None)
        if other is None:
            rest.append(rewrite)
        else:
            same.remove(other)
            rest.append(Rewrite([*other.deltas, *rewrite.deltas]))
    return [*rest, *(rewrite for same in gone.values() for rewrite in same)]


def _place(rewrite: Rewrite) -> tuple[str, ...]:
    return rewrite.deltas[0].at.path


def _work(rewrite: Rewrite) -> list[Delta]:
    """Return what is removed, added or changed, its surroundings left aside."""
    around = {Side.REWIRED, Side.RESULTS}
    own = [d for d in rewrite.deltas if d.side not in around and d.op != "parameter"]
    return own or [d for d in rewrite.deltas if d.side not in around] or rewrite.deltas


def _labels(work: list[Delta]) -> Hashable:
    return tuple(sorted((delta.op, _dtype(delta)) for delta in work))


def _dtype(delta: Delta) -> str:
    one = delta.b if delta.b is not None else delta.a
    return one.type.dtype if one is not None and isinstance(one.type, Tensor) else ""


def _key(rewrite: Rewrite) -> Hashable:
    """Return what is the same for rewrites of one pattern: operations, not sizes or counts.

    A constant is made again in every loop that reads it: where is of no account.
    """
    work = _work(rewrite)
    what = frozenset((delta.side, delta.op, _dtype(delta), _names(delta)) for delta in work)
    places = () if _constants_alone(work) else (delta.at.path for delta in work)
    return (frozenset(places), what)


def _names(delta: Delta) -> tuple[str, ...]:
    """Return what changed in a pair; the positions of other operands are of no account."""
    return delta.what if delta.side is Side.CHANGED else ()


def _pattern(alike: list[Rewrite]) -> Pattern:
    alike = sorted(alike, key=lambda rewrite: len(rewrite.deltas))
    work = _work(alike[0])
    every = [delta for rewrite in alike for delta in _work(rewrite)]
    kind = _kind(work)
    about = _about(every)
    return Pattern(
        kind=kind,
        severity=_severity(every, about),
        title=_title(kind, work),
        about=about,
        rewrites=alike,
    )


def _kind(work: list[Delta]) -> Kind:
    sides = {delta.side for delta in work}
    if sides == {Side.REMOVED, Side.ADDED}:
        removed = [d for d in work if d.side is Side.REMOVED]
        added = [d for d in work if d.side is Side.ADDED]
        if {d.at.path for d in removed} != {d.at.path for d in added} and _labels(
            removed
        ) == _labels(added):
            return Kind.MOVED
        return Kind.REPLACED
    if Side.REMOVED in sides or Side.ADDED in sides:
        if len(sides) > 1:
            return Kind.REPLACED
        return Kind.REMOVED if Side.REMOVED in sides else Kind.ADDED
    if Side.CHANGED in sides:
        return Kind.SHARDING if {w for d in work for w in d.what} == {"sharding"} else Kind.CHANGED
    return Kind.REWIRED if Side.REWIRED in sides else Kind.RESULTS


def _about(work: list[Delta]) -> str:
    """Return what a pattern concerns first of all."""
    return next((about for about, concerns in _ABOUT if concerns(work)), "")


def _any_of(ops: Collection[str]) -> Callable[[list[Delta]], bool]:
    return lambda work: any(delta.op in ops for delta in work)


def _replaced_between_spaces(work: list[Delta]) -> bool:
    return any(_spaces(delta.a) != _spaces(delta.b) for delta in work if delta.a and delta.b)


def _resharded(work: list[Delta]) -> bool:
    return any(delta.side is Side.CHANGED and "sharding" in delta.what for delta in work)


def _of_another_dtype(work: list[Delta]) -> bool:
    return any(_retyped(delta) for delta in work)


def _constants_alone(work: list[Delta]) -> bool:
    return all(delta.op in CONSTANTS for delta in work)


_ABOUT: Final[tuple[tuple[str, Callable[[list[Delta]], bool]], ...]] = (
    ("collective", _any_of(COLLECTIVES)),
    ("placement", _replaced_between_spaces),
    ("sharding", _resharded),
    ("custom call", _any_of({"custom-call", "custom_call", "ffi_call"})),
    ("value order", _any_of(REDUCTIONS)),
    ("dtype", _of_another_dtype),
    ("dtype", _any_of({"convert", "convert_element_type"})),
    ("constant", _constants_alone),
)
"""What a pattern may concern, the most telling first."""


def _spaces(instruction: Instruction | None) -> str:
    if instruction is None or not isinstance(instruction.type, Tensor):
        return ""
    return instruction.type.space


def _retyped(delta: Delta) -> bool:
    return (
        delta.a is not None
        and delta.b is not None
        and isinstance(delta.a.type, Tensor)
        and isinstance(delta.b.type, Tensor)
        and delta.a.type.dtype != delta.b.type.dtype
    )


def _severity(work: list[Delta], about: str) -> Severity:
    """Say what a pattern may mean: moving elements about is no change of values."""
    moves = all(delta.op in MOVEMENT and delta.side in {Side.REMOVED, Side.ADDED} for delta in work)
    # Elements that are only moved on one side end up somewhere else.
    dtypes = [{_dtype(d) for d in work if d.side is side} for side in (Side.REMOVED, Side.ADDED)]
    same = dtypes[0] == dtypes[1] and len(dtypes[0]) > 0
    return Severity.STRUCTURAL if moves and same and not about else Severity.SEMANTIC


def _title(kind: Kind, work: list[Delta]) -> str:
    gone, new, changed, rewired = (
        _ops(work, side) for side in (Side.REMOVED, Side.ADDED, Side.CHANGED, Side.REWIRED)
    )
    names = ", ".join(dict.fromkeys(name for delta in work for name in delta.what))
    said = f"{gone or new} {'removed' if gone else 'added'}"
    titles = {
        Kind.REPLACED: f"{gone} -> {new}" if gone and new else f"{said}, {changed} changed",
        Kind.MOVED: f"{new} moved",
        Kind.CHANGED: f"{names} of {changed}",
        Kind.SHARDING: f"{names} of {changed}",
        Kind.REWIRED: f"operands of {rewired}",
        Kind.RESULTS: "what is returned",
    }
    return titles.get(kind, said)


def _ops(work: list[Delta], side: Side) -> str:
    counted = Counter(delta.op for delta in work if delta.side is side)
    return ", ".join(op if n == 1 else f"{op} x{n}" for op, n in sorted(counted.items()))
