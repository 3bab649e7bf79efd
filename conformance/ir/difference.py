"""The IR diff: the differences of two modules as patterns, for readers and for gates.

It has three parts: the interface of the modules, their work, and, where the work is the same, its
grouping and its text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.ir.alignment import align
from conformance.ir.analysis import parse_ir
from conformance.ir.change import Change, ChangeKind, IrDiff, Severity
from conformance.ir.divergence import find_divergence
from conformance.ir.edits import Rewrite, Side, find_rewrites
from conformance.ir.excerpts import Excerpts, quote
from conformance.ir.fact_table import collect_facts, render_sharding
from conformance.ir.fingerprint import fingerprint, hash_module
from conformance.ir.graph import Sharding
from conformance.ir.normal.forms import make_exact, to_canonical
from conformance.ir.patterns import RewritePattern, find_patterns
from conformance.ir.vocabulary import MOVEMENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.ir.fingerprint import Fingerprints
    from conformance.ir.graph import Module

_DEVICES: Final = ("num_partitions", "replica_count")
# Operations that only regroup work or carry values; a difference of these alone is structural.
_GROUPING = frozenset({"fusion", "call", "copy", "copy-start", "copy-done", "parameter", "bitcast"})


def diff(a: str, b: str, kind: str = "hlo") -> IrDiff:
    """Compare two texts of the same kind.

    Args:
        a: The first text: HLO, StableHLO in the generic form, or a jaxpr as the worker writes it.
        b: The second text.
        kind: `hlo`, `stablehlo` or `jaxpr`.

    Raises:
        IrSyntaxError: If a text is not understood; the message names the line.
    """
    return diff_modules(parse_ir(a, kind), parse_ir(b, kind), Excerpts(a, kind), Excerpts(b, kind))


def diff_modules(a: Module, b: Module, text_a: Excerpts, text_b: Excerpts) -> IrDiff:
    """Compare two modules.

    Args:
        a: The first module, as parsed; rewritten in place.
        b: The second module.
        text_a: Quotes lines of the first text.
        text_b: Quotes lines of the second text.
    """
    unknown = a.not_understood + b.not_understood
    hashes = make_exact(a), make_exact(b)
    facts = {"a": collect_facts(a), "b": collect_facts(b)}
    equal = fingerprint(a, hashes[0]) == fingerprint(b, hashes[1])
    sides = (a, hashes[0], text_a), (b, hashes[1], text_b)
    censuses = [] if equal else [_take_census(*side) for side in sides]
    # Donation, devices and placement are in the header, which no alignment of instructions sees.
    changes = [] if equal else [*_compare_interfaces(a, b, facts)]
    # From here on the modules are rewritten: the census of the exact forms is complete.
    if equal or to_canonical(a) == to_canonical(b):
        return IrDiff(
            kind=a.kind,
            equal=equal,
            neutral_equal=True,
            changes=() if equal else (*changes, *_compare_grouping(*censuses)),
            facts=facts,
            # Nothing is aligned when the canonical forms are equal: all instructions match.
            matched=sum(len(computation.instructions) for computation in a.find_reachable()),
            not_understood=unknown,
        )
    # `to_canonical` returns only a fingerprint, and alignment needs the hash of each computation.
    unordered = hash_module(a, commutative=True), hash_module(b, commutative=True)
    alignment = align(a, b, *unordered)
    found = find_rewrites(alignment)
    changes += [_make_change(pattern, text_a, text_b) for pattern in find_patterns(found)]
    return IrDiff(
        kind=a.kind,
        equal=False,
        neutral_equal=False,
        changes=tuple(sorted(changes or _compare_grouping(*censuses), key=_rank)),
        begins=find_divergence(found),
        facts=facts,
        not_understood=unknown,
        **_count_instructions(alignment.equal_instructions, len(alignment.to_b), found),
    )


def _rank(change: Change) -> tuple[int, int]:
    return list(Severity).index(Severity(change.severity)), -change.count


def _count_instructions(alike: int, paired: int, found: list[Rewrite]) -> dict[str, int]:
    alone = sum(d.side in {Side.REMOVED, Side.ADDED} for r in found for d in r)
    # By identity: a pair may have two edits, one of its attributes and one of its operands.
    both = {id(d.a) for r in found for d in r if d.side in {Side.CHANGED, Side.REWIRED}}
    return {"matched": alike + paired - len(both), "changed": len(both), "unmatched": alone}


def _make_change(pattern: RewritePattern, text_a: Excerpts, text_b: Excerpts) -> Change:
    example = pattern.rewrites[0]
    return Change(
        kind=pattern.kind,
        count=len(pattern.rewrites),
        severity=pattern.severity,
        title=pattern.title,
        about=pattern.about,
        where=_describe_place(example),
        before=text_a.quote_lines(edit.a for edit in example if edit.a is not None),
        after=text_b.quote_lines(edit.b for edit in example if edit.b is not None),
    )


def _describe_place(edits: Rewrite) -> str:
    places = dict.fromkeys(" of ".join(reversed(edit.place.path)) or "entry" for edit in edits)
    words = [" -> ".join(places)]
    origins = [node.origin for edit in edits for node in edit.instructions]
    words += [origin.name for origin in origins if origin.name][:1]
    words += [f"{origin.file}:{origin.line}" for origin in origins if origin.file][:1]
    return ", ".join(words)


def _compare_interfaces(
    a: Module, b: Module, facts: Mapping[str, Mapping[str, Any]]
) -> Iterator[Change]:
    """Yield the differences of the interfaces of two modules in the exact form."""
    before, after = facts["a"]["donation"], facts["b"]["donation"]
    gone = [line for line in before if line not in after]
    new = [line for line in after if line not in before]
    if gone or new:
        title = f"donation {'changed' if gone and new else 'removed' if gone else 'added'}"
        yield _make_interface_change(
            ChangeKind.DONATION, title, (gone, new), max(len(gone), len(new))
        )
    # A header without these attributes means a single partition and replica.
    counts = [(n, a.attributes.get(n) or 1, b.attributes.get(n) or 1) for n in _DEVICES]
    if other := [(n, f"{n}={x}", f"{n}={y}") for n, x, y in counts if x != y]:
        names, *lines = zip(*other, strict=True)
        yield _make_interface_change(
            ChangeKind.CHANGED, ", ".join(names), lines, len(other), about="devices", where="header"
        )
    pairs = zip(facts["a"]["results"], facts["b"]["results"], strict=False)
    spaces = [[result.get("memory") for result in pair] for pair in pairs]
    if moved := [n for n, (x, y) in enumerate(spaces) if x != y]:
        places = [(f"result {moved[0]}: {space or 'device'}",) for space in spaces[moved[0]]]
        yield _make_interface_change(
            ChangeKind.PLACEMENT, "memory space of results", places, len(moved)
        )
    # A jaxpr and StableHLO keep their shardings in the canonical form, where alignment finds them.
    if a.kind == "hlo":
        yield from _compare_shardings(a, b)


def _compare_shardings(a: Module, b: Module) -> Iterator[Change]:
    """Yield the shardings of HLO parameters that differ or are missing on one side."""
    pairs = zip(a.entry.parameters, b.entry.parameters, strict=False)
    stated = [
        (x.name, x.attributes.get("sharding"), y.attributes.get("sharding")) for x, y in pairs
    ]
    other = [item for item in stated if item[1] != item[2]]
    title = "sharding of parameters"
    for found, severity, end in (
        ([item for item in other if None not in item], Severity.SEMANTIC, ""),
        # Partitioned modules of jax 0.12.0 and later omit shardings: absence is no difference.
        ([i for i in other if None in i], Severity.COSMETIC, ", missing on one side"),
    ):
        lines = [
            [f"%{found[0][0]}: {render_sharding(sharding)}"]
            if isinstance(sharding, Sharding)
            else []
            for sharding in (found[0][1:] if found else ())
        ]
        if lines:
            yield _make_interface_change(
                ChangeKind.SHARDING, title + end, lines, len(found), severity=severity
            )


def _make_interface_change(
    kind: ChangeKind, title: str, lines: Sequence[Sequence[str]], count: int, **more: Any
) -> Change:
    """Return a change of the interface, with its lines in the first and the second module."""
    usual = {"severity": Severity.SEMANTIC, "about": str(kind), "where": "entry"}
    before, after = map(tuple, lines)
    return Change(kind=kind, title=title, count=count, before=before, after=after, **(usual | more))


@dataclass(slots=True)
class _Census:
    """Counts of the instructions of a module, with examples.

    Attributes:
        header: Attributes of the module as text.
        ops: Counts by operation.
        labels: Counts by the hash of an instruction without its operands.
        examples: Operation and line of an instruction with that hash.
    """

    header: dict[str, str]
    ops: Counter[str] = field(default_factory=Counter)
    labels: Counter[bytes] = field(default_factory=Counter)
    examples: dict[bytes, tuple[str, str]] = field(default_factory=dict)


def _take_census(module: Module, hashes: Fingerprints, text: Excerpts) -> _Census:
    """Count the instructions of a module.

    Args:
        module: A module in the exact form.
        hashes: Its hashes.
        text: Quotes the examples.
    """
    census = _Census({name: repr(value) for name, value in module.attributes.items()})
    for computation in module.find_reachable():
        for instruction in computation.instructions:
            # Without operands: another fusion changes the operands of most of its neighbours.
            label = hashes.hash_label(instruction)
            census.ops[instruction.op] += 1
            census.labels[label] += 1
            if label not in census.examples:
                census.examples[label] = (instruction.op, text.find_line(instruction))
    return census


def _compare_grouping(a: _Census, b: _Census) -> Iterator[Change]:
    """Yield the differences in grouping and spelling of modules with equal canonical forms.

    Args:
        a: The instructions of the first module.
        b: The instructions of the second module.
    """
    if a.header != b.header:
        names = [n for n in {**a.header, **b.header} if a.header.get(n) != b.header.get(n)]
        yield Change(
            kind=ChangeKind.WRITTEN,
            count=len(names),
            severity=Severity.COSMETIC,
            title=f"header: {', '.join(names)}",
            where="header",
            before=tuple(f"{n}={a.header[n]}"[:200] for n in names if n in a.header),
            after=tuple(f"{n}={b.header[n]}"[:200] for n in names if n in b.header),
        )
    gone, new = a.labels - b.labels, b.labels - a.labels
    ops = sorted({a.examples[x][0] for x in gone} | {b.examples[x][0] for x in new})
    # The exact forms differ, so an entry is due even if all counts are equal.
    if not ops and a.header == b.header:
        yield Change(
            kind=ChangeKind.GROUPED,
            count=1,
            severity=Severity.STRUCTURAL,
            title="the same instructions through other tuples, calls or copies",
        )
    if ops:
        regrouped = [op for op in ops if a.ops[op] != b.ops[op]]
        counts = ", ".join(f"{op} {a.ops[op]} -> {b.ops[op]}" for op in regrouped)
        # A parameter alone differs by an annotation, such as its sharding: no work is regrouped.
        moved = ops != ["parameter"] and all(op in _GROUPING or op in MOVEMENT for op in ops)
        yield Change(
            kind=ChangeKind.GROUPED,
            count=sum(gone.values()) + sum(new.values()),
            severity=Severity.STRUCTURAL if moved or regrouped else Severity.COSMETIC,
            title=f"other fusions, copies or annotations: {counts or ', '.join(ops)}",
            before=tuple(quote(a.examples[x][1]) for x in list(gone)[:1]),
            after=tuple(quote(b.examples[x][1]) for x in list(new)[:1]),
        )
