"""What two modules say to their callers: donation, shardings, memory spaces, how many devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from conformance.ir.change import Change, Kind, Severity
from conformance.ir.fact_table import sharding_text
from conformance.ir.graph import Sharding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from conformance.ir.graph import Attribute, Module

_DEVICES: Final = ("num_partitions", "replica_count")


def interface_changes(
    a: Module, b: Module, facts: Mapping[str, Mapping[str, Any]]
) -> Iterator[Change]:
    """Yield how the interfaces of two modules differ.

    Args:
        a: The first module, in the form `exact`.
        b: The second.
        facts: The facts of both, `a` and `b`.
    """
    yield from _donation(facts["a"]["donation"], facts["b"]["donation"])
    yield from _devices(a, b)
    yield from _memory(facts["a"]["results"], facts["b"]["results"])
    yield from _shardings(a, b)


def _devices(a: Module, b: Module) -> Iterator[Change]:
    """Yield how many partitions and replicas there are; one is what is not said."""
    said = [(name, a.attributes.get(name), b.attributes.get(name)) for name in _DEVICES]
    other = [item for item in said if (item[1] or 1) != (item[2] or 1)]
    if other:
        yield Change(
            kind=Kind.CHANGED,
            count=len(other),
            severity=Severity.SEMANTIC,
            title=", ".join(name for name, _, _ in other),
            about="devices",
            where="header",
            before=tuple(f"{name}={before or 1}" for name, before, _ in other),
            after=tuple(f"{name}={after or 1}" for name, _, after in other),
        )


def _memory(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Iterator[Change]:
    """Yield the results that are put into another memory space of the host, or none of it."""
    pairs = list(enumerate(zip(before, after, strict=False)))
    other = [(n, x, y) for n, (x, y) in pairs if x.get("memory") != y.get("memory")]
    if other:
        yield Change(
            kind=Kind.PLACEMENT,
            count=len(other),
            severity=Severity.SEMANTIC,
            title="memory space of results",
            about="placement",
            where="entry",
            before=tuple(f"result {n}: {x.get('memory', 'device')}" for n, x, _ in other[:1]),
            after=tuple(f"result {n}: {y.get('memory', 'device')}" for n, _, y in other[:1]),
        )


def _donation(before: list[str], after: list[str]) -> Iterator[Change]:
    """Yield which parameters may no longer be overwritten, or may be now."""
    gone = [line for line in before if line not in after]
    new = [line for line in after if line not in before]
    if gone or new:
        yield Change(
            kind=Kind.DONATION,
            count=max(len(gone), len(new)),
            severity=Severity.SEMANTIC,
            title=f"donation {'changed' if gone and new else 'removed' if gone else 'added'}",
            about="donation",
            where="entry",
            before=tuple(gone),
            after=tuple(new),
        )


def _shardings(a: Module, b: Module) -> Iterator[Change]:
    """Yield the shardings of HLO parameters that differ, or are said on one side only."""
    if a.kind != "hlo":
        return
    pairs = zip(a.entry.parameters, b.entry.parameters, strict=False)
    said = [
        (one, one.attributes.get("sharding"), two.attributes.get("sharding")) for one, two in pairs
    ]
    other = [(one.name, before, after) for one, before, after in said if before != after]
    clear = [item for item in other if None not in item]
    unsaid = [item for item in other if None in item]
    if clear:
        yield _sharding_change(clear, Severity.SEMANTIC, "sharding of parameters")
    if unsaid:
        title = "sharding of parameters, which one side does not say"
        yield _sharding_change(unsaid, Severity.COSMETIC, title)


def _sharding_change(
    found: list[tuple[str, Attribute, Attribute]], severity: Severity, title: str
) -> Change:
    def lines(position: int) -> tuple[str, ...]:
        stated = [(item[0], item[position]) for item in found[:1]]
        return tuple(f"%{n}: {sharding_text(s)}" for n, s in stated if isinstance(s, Sharding))

    return Change(
        kind=Kind.SHARDING,
        count=len(found),
        severity=severity,
        title=title,
        about="sharding",
        where="entry",
        before=lines(1),
        after=lines(2),
    )
