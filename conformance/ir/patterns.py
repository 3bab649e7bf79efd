"""Patterns: equal rewrites in several places, with a count and an example."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.ir.change import ChangeKind, Severity
from conformance.ir.edits import IrEdit, Rewrite, Side
from conformance.ir.graph import Tensor
from conformance.ir.vocabulary import COLLECTIVES, CONSTANTS, MOVEMENT, REDUCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable

    from conformance.ir.graph import Type


@dataclass(slots=True)
class RewritePattern:
    """Equal rewrites.

    Attributes:
        kind: Kind of the change.
        severity: How much it may matter.
        title: A short description, e.g. `reduce-window removed`.
        about: Subject, e.g. `collective`, `value order`; empty if there is no special one.
        rewrites: The rewrites, the example first.
    """

    kind: ChangeKind
    severity: Severity
    title: str
    about: str
    rewrites: list[Rewrite]


def find_patterns(rewrites: Iterable[Rewrite]) -> list[RewritePattern]:
    """Group equal rewrites.

    Args:
        rewrites: The rewrites of two modules.

    Returns:
        The patterns, the gravest and most frequent first.
    """
    grouped: dict[Hashable, list[Rewrite]] = {}
    for rewrite in _join_moved(rewrites):
        grouped.setdefault(_make_key(rewrite), []).append(rewrite)
    made = [_make_pattern(alike) for alike in grouped.values()]
    order = list(Severity)
    return sorted(made, key=lambda p: (order.index(p.severity), -len(p.rewrites)))


def _join_moved(rewrites: Iterable[Rewrite]) -> list[Rewrite]:
    """Join removals from a computation with equal additions to another."""
    rest: list[Rewrite] = []
    gone: dict[Hashable, list[Rewrite]] = {}
    new: list[Rewrite] = []
    for rewrite in rewrites:
        work = _select_work(rewrite)
        sides = {edit.side for edit in work}
        if sides == {Side.REMOVED}:
            gone.setdefault(_label_edits(work), []).append(rewrite)
        elif sides == {Side.ADDED}:
            new.append(rewrite)
        else:
            rest.append(rewrite)
    # Removals are collected before any addition is matched: either may come first in the text.
    for rewrite in new:
        same = gone.get(_label_edits(_select_work(rewrite)), [])
        other = next((o for o in same if o[0].place.path != rewrite[0].place.path), None)
        if other is None:
            rest.append(rewrite)
        else:
            # Once only, so that the number of moves is not larger than that of removals.
            same.remove(other)
            rest.append([*other, *rewrite])
    return [*rest, *(rewrite for same in gone.values() for rewrite in same)]


def _select_work(rewrite: Rewrite) -> list[IrEdit]:
    """Return the edits of a rewrite without its surroundings: parameters, readers and results."""
    around = {Side.REWIRED, Side.RESULTS}
    own = [d for d in rewrite if d.side not in around and d.op != "parameter"]
    # A rewrite of surroundings alone, such as swapped operands, is described by them.
    return own or [d for d in rewrite if d.side not in around] or rewrite


def _label_edits(work: list[IrEdit]) -> Hashable:
    return tuple(sorted((edit.op, _get_dtype(edit)) for edit in work))


def _get_dtype(edit: IrEdit) -> str:
    node = edit.b if edit.b is not None else edit.a
    return node.type.dtype if node is not None and isinstance(node.type, Tensor) else ""


def _make_key(rewrite: Rewrite) -> Hashable:
    """Return the key of equal rewrites: operations and element types, not sizes or counts.

    The place is ignored for constants, which are copied into every loop that reads them.
    """
    work = _select_work(rewrite)
    # The positions of operands depend on the reader, not on the rewrite.
    names = [edit.aspects if edit.side is Side.CHANGED else () for edit in work]
    edits = {
        (edit.side, edit.op, _get_dtype(edit), name) for edit, name in zip(work, names, strict=True)
    }
    places = () if _are_constants(work) else (edit.place.path for edit in work)
    # Sets: an unrolled loop or a wider model repeats the same edits within a rewrite.
    return frozenset(places), frozenset(edits)


def _make_pattern(alike: list[Rewrite]) -> RewritePattern:
    # The smallest rewrite is the clearest example.
    alike = sorted(alike, key=len)
    work = _select_work(alike[0])
    # All rewrites count, not only the example: severity must not depend on the choice of one.
    every = [edit for rewrite in alike for edit in _select_work(rewrite)]
    kind = _classify(work)
    about = next((about for about, concerns in _SUBJECTS if concerns(every)), "")
    severity = _rate_severity(every, about)
    return RewritePattern(
        kind=kind, severity=severity, title=_make_title(kind, work), about=about, rewrites=alike
    )


def _classify(work: list[IrEdit]) -> ChangeKind:
    sides = {edit.side for edit in work}
    if sides == {Side.REMOVED, Side.ADDED}:
        removed, added = (
            [e for e in work if e.side is side] for side in (Side.REMOVED, Side.ADDED)
        )
        elsewhere = {edit.place.path for edit in removed} != {edit.place.path for edit in added}
        return (
            ChangeKind.MOVED
            if elsewhere and _label_edits(removed) == _label_edits(added)
            else ChangeKind.REPLACED
        )
    if Side.REMOVED in sides or Side.ADDED in sides:
        if len(sides) > 1:
            return ChangeKind.REPLACED
        return ChangeKind.REMOVED if Side.REMOVED in sides else ChangeKind.ADDED
    if Side.CHANGED in sides:
        return (
            ChangeKind.SHARDING
            if {w for d in work for w in d.aspects} == {"sharding"}
            else ChangeKind.CHANGED
        )
    return ChangeKind.REWIRED if Side.REWIRED in sides else ChangeKind.RESULTS


def _has_any_of(ops: Collection[str]) -> Callable[[list[IrEdit]], bool]:
    return lambda work: any(edit.op in ops for edit in work)


def _has_types_that(differ: Callable[[Type, Type], bool]) -> Callable[[list[IrEdit]], bool]:
    """Return a predicate of edits: whether the types of any pair differ."""
    return lambda work: any(
        differ(edit.a.type, edit.b.type)
        for edit in work
        if edit.a is not None and edit.b is not None
    )


def _get_space(type_: Type) -> str:
    return type_.space if isinstance(type_, Tensor) else ""


def _dtypes_differ(a: Type, b: Type) -> bool:
    return isinstance(a, Tensor) and isinstance(b, Tensor) and a.dtype != b.dtype


def _are_constants(work: list[IrEdit]) -> bool:
    return all(edit.op in CONSTANTS for edit in work)


# The subjects of patterns, the most specific first.
_SUBJECTS: Final[tuple[tuple[str, Callable[[list[IrEdit]], bool]], ...]] = (
    ("collective", _has_any_of(COLLECTIVES)),
    ("placement", _has_types_that(lambda a, b: _get_space(a) != _get_space(b))),
    (
        "sharding",
        lambda work: any(e.side is Side.CHANGED and "sharding" in e.aspects for e in work),
    ),
    ("custom call", _has_any_of({"custom-call", "custom_call", "ffi_call"})),
    ("value order", _has_any_of(REDUCTIONS)),
    ("dtype", _has_types_that(_dtypes_differ)),
    ("dtype", _has_any_of({"convert", "convert_element_type"})),
    ("constant", _are_constants),
)


def _rate_severity(work: list[IrEdit], about: str) -> Severity:
    """Return the severity of edits: a movement of elements is no change of values."""
    moves = all(edit.op in MOVEMENT and edit.side in {Side.REMOVED, Side.ADDED} for edit in work)
    # Movement on one side only puts the elements elsewhere, which is a change of values.
    dtypes = [
        {_get_dtype(d) for d in work if d.side is side} for side in (Side.REMOVED, Side.ADDED)
    ]
    same = dtypes[0] == dtypes[1] and len(dtypes[0]) > 0
    return Severity.STRUCTURAL if moves and same and not about else Severity.SEMANTIC


def _make_title(kind: ChangeKind, work: list[IrEdit]) -> str:
    gone, new, changed, rewired = (
        _count_ops(work, side) for side in (Side.REMOVED, Side.ADDED, Side.CHANGED, Side.REWIRED)
    )
    names = ", ".join(dict.fromkeys(name for edit in work for name in edit.aspects))
    one_sided = f"{gone or new} {'removed' if gone else 'added'}"
    titles = {
        ChangeKind.REPLACED: f"{gone} -> {new}"
        if gone and new
        else f"{one_sided}, {changed} changed",
        ChangeKind.MOVED: f"{new} moved",
        ChangeKind.CHANGED: f"{names} of {changed}",
        ChangeKind.SHARDING: f"{names} of {changed}",
        ChangeKind.REWIRED: f"operands of {rewired}",
        ChangeKind.RESULTS: "returned values",
    }
    return titles.get(kind, one_sided)


def _count_ops(work: list[IrEdit], side: Side) -> str:
    counted = Counter(edit.op for edit in work if edit.side is side)
    return ", ".join(op if n == 1 else f"{op} x{n}" for op, n in sorted(counted.items()))
