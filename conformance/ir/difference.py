"""The difference of two modules, said in patterns that people read and a nightly can gate on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.ir.alignment import align
from conformance.ir.change import Change, IrDiff, Severity
from conformance.ir.divergence import beginnings
from conformance.ir.edits import Delta, Rewrite, Side, rewrites
from conformance.ir.excerpts import Excerpts
from conformance.ir.fact_table import fact_table
from conformance.ir.fingerprint import fingerprint, fingerprints
from conformance.ir.grouping import census, grouping
from conformance.ir.interface import interface_changes
from conformance.ir.normal.forms import make_exact, to_canonical
from conformance.ir.patterns import Pattern, patterns
from conformance.ir.reading import read

if TYPE_CHECKING:
    from conformance.ir.graph import Module


def diff(a: str, b: str, kind: str = "hlo") -> IrDiff:
    """Compare two texts of one kind.

    Args:
        a: The first text: HLO, StableHLO in the generic form, or a jaxpr as the worker writes it.
        b: The second.
        kind: `hlo`, `stablehlo` or `jaxpr`.

    Returns:
        How they differ.

    Raises:
        IrSyntaxError: If a text is not understood; the message says which, and names the line.
    """
    return diff_modules(read(a, kind), read(b, kind), Excerpts(a, kind), Excerpts(b, kind))


def diff_modules(a: Module, b: Module, text_a: Excerpts, text_b: Excerpts) -> IrDiff:
    """Compare two modules.

    Args:
        a: The first, as parsed; rewritten in place.
        b: The second.
        text_a: What lines of the first text are quoted from.
        text_b: The same of the second.

    Returns:
        How they differ.
    """
    unknown = a.not_understood + b.not_understood
    hashes = make_exact(a), make_exact(b)
    equal = fingerprint(a, hashes[0]) == fingerprint(b, hashes[1])
    facts = {"a": fact_table(a), "b": fact_table(b)}
    if equal:
        size = sum(len(c.instructions) for c in a.reachable())
        return IrDiff(
            kind=a.kind,
            equal=True,
            neutral_equal=True,
            facts=facts,
            matched=size,
            not_understood=unknown,
        )
    counted = census(a, hashes[0], text_a), census(b, hashes[1], text_b)
    said = list(interface_changes(a, b, facts))
    neutral_equal = to_canonical(a) == to_canonical(b)
    if neutral_equal:
        size = sum(len(c.instructions) for c in a.reachable())
        return IrDiff(
            kind=a.kind,
            equal=False,
            neutral_equal=True,
            changes=(*said, *grouping(*counted)),
            facts=facts,
            matched=size,
            not_understood=unknown,
        )
    unordered = fingerprints(a, commutative=True), fingerprints(b, commutative=True)
    alignment = align(a, b, *unordered)
    found = rewrites(alignment)
    made = [_change(pattern, text_a, text_b) for pattern in patterns(found)]
    changes = (*said, *made) if said or made else tuple(grouping(*counted))
    return IrDiff(
        kind=a.kind,
        equal=False,
        neutral_equal=False,
        changes=tuple(sorted(changes, key=_gravity)),
        begins=beginnings(found),
        facts=facts,
        not_understood=unknown,
        **_tally(alignment.alike, len(alignment.to_b), found),
    )


def _gravity(change: Change) -> tuple[int, int]:
    return list(Severity).index(Severity(change.severity)), -change.count


def _tally(alike: int, paired: int, found: list[Rewrite]) -> dict[str, int]:
    alone = sum(d.side in {Side.REMOVED, Side.ADDED} for r in found for d in r.deltas)
    both = {id(d.a) for r in found for d in r.deltas if d.side in {Side.CHANGED, Side.REWIRED}}
    return {"matched": alike + paired - len(both), "changed": len(both), "unmatched": alone}


def _change(pattern: Pattern, text_a: Excerpts, text_b: Excerpts) -> Change:
    example = pattern.rewrites[0]
    deltas = example.deltas
    return Change(
        kind=pattern.kind,
        count=len(pattern.rewrites),
        severity=pattern.severity,
        title=pattern.title,
        about=pattern.about,
        where=_where(deltas),
        before=text_a.lines_of(d.a for d in deltas if d.a is not None),
        after=text_b.lines_of(d.b for d in deltas if d.b is not None),
    )


def _where(deltas: list[Delta]) -> str:
    places = list(dict.fromkeys(" of ".join(reversed(d.at.path)) or "entry" for d in deltas))
    words = [" -> ".join(places)]
    named = [one for d in deltas for one in (d.a, d.b) if one is not None and one.origin.name]
    located = [one for d in deltas for one in (d.a, d.b) if one is not None and one.origin.file]
    if named:
        words.append(named[0].origin.name)
    if located:
        origin = located[0].origin
        words.append(f"{origin.file}:{origin.line}")
    return ", ".join(words)
