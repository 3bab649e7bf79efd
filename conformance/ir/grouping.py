"""Modules that do the same work: how it is grouped, and what is written otherwise."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from conformance.ir.change import Change, Kind, Severity
from conformance.ir.excerpts import quoted
from conformance.ir.vocabulary import MOVEMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.ir.excerpts import Excerpts
    from conformance.ir.fingerprint import Fingerprints
    from conformance.ir.graph import Module

_GROUPING = frozenset({"fusion", "call", "copy", "copy-start", "copy-done", "parameter", "bitcast"})


@dataclass(slots=True)
class Census:
    """What instructions there are, each by what it does by itself, with an example of each.

    Attributes:
        header: What the module says of itself.
        ops: How many there are of each operation.
        labels: How many there are that do the same by themselves.
        examples: Of these, the operation, and a line as it is written.
    """

    header: dict[str, str]
    ops: Counter[str] = field(default_factory=Counter)
    labels: Counter[bytes] = field(default_factory=Counter)
    examples: dict[bytes, tuple[str, str]] = field(default_factory=dict)


def census(module: Module, hashes: Fingerprints, text: Excerpts) -> Census:
    """Count the instructions of a module.

    Args:
        module: In the form `exact`.
        hashes: Its hashes.
        text: What examples are quoted from.
    """
    counted = Census({name: repr(value) for name, value in module.attributes.items()})
    for computation in module.reachable():
        for instruction in computation.instructions:
            label = hashes.label(instruction)
            counted.ops[instruction.op] += 1
            counted.labels[label] += 1
            if label not in counted.examples:
                counted.examples[label] = (instruction.op, text.written(instruction))
    return counted


def grouping(a: Census, b: Census) -> Iterator[Change]:
    """Yield what differs between modules that are the same in the form `canonical`.

    Args:
        a: What there is in the first.
        b: What there is in the second.
    """
    if a.header != b.header:
        names = [n for n in {**a.header, **b.header} if a.header.get(n) != b.header.get(n)]
        yield Change(
            kind=Kind.WRITTEN,
            count=len(names),
            severity=Severity.COSMETIC,
            title=f"header: {', '.join(names)}",
            where="header",
            before=tuple(f"{n}={a.header[n]}"[:200] for n in names if n in a.header),
            after=tuple(f"{n}={b.header[n]}"[:200] for n in names if n in b.header),
        )
    gone, new = a.labels - b.labels, b.labels - a.labels
    ops = sorted({a.examples[x][0] for x in gone} | {b.examples[x][0] for x in new})
    if not ops and a.header == b.header:
        yield Change(
            kind=Kind.GROUPED,
            count=1,
            severity=Severity.STRUCTURAL,
            title="the same instructions, passed through other tuples, calls or copies",
        )
    if ops:
        regrouped = [op for op in ops if a.ops[op] != b.ops[op]]
        counts = ", ".join(f"{op} {a.ops[op]} -> {b.ops[op]}" for op in regrouped)
        moved = ops != ["parameter"] and all(op in _GROUPING or op in MOVEMENT for op in ops)
        yield Change(
            kind=Kind.GROUPED,
            count=sum(gone.values()) + sum(new.values()),
            severity=Severity.STRUCTURAL if moved or regrouped else Severity.COSMETIC,
            title=f"fused, copied or annotated otherwise: {counts or ', '.join(ops)}",
            before=tuple(quoted(a.examples[x][1]) for x in list(gone)[:1]),
            after=tuple(quoted(b.examples[x][1]) for x in list(new)[:1]),
        )
