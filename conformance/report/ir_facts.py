"""The facts in which two IRs differ, one short row each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from conformance.ir.fact_table import GATING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_UNSAID = frozenset({"sharding"})
"""What one side may leave unsaid without a difference that gates."""


class FactRow(NamedTuple):
    """One difference: which fact, of what, on either side; and whether it fails a run."""

    fact: str
    of: str
    before: str
    after: str
    gates: bool

    @property
    def name(self) -> str:
        """The fact, and of what."""
        return f"{self.fact} {self.of}".strip()


def compare_facts(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[FactRow]:
    """Return the facts in which two IRs differ, those that gate first.

    Args:
        a: The facts of the first.
        b: Those of the second.
    """
    names = [*GATING, *(n for n in {**a, **b} if n not in GATING)]
    rows = [row for name in names for row in _compare(name, a.get(name), b.get(name))]
    return sorted(rows, key=lambda row: not row.gates)


def _compare(name: str, a: Any, b: Any) -> Iterator[FactRow]:
    gates = name in GATING
    match a, b:
        case dict(), dict():
            counts = ((of, a.get(of, 0), b.get(of, 0)) for of in sorted({*a, *b}))
            for of, before, after in counts:
                if before != after:
                    yield FactRow(name, of, str(before), str(after), gates)
        case list(), list() if all(isinstance(one, dict) for one in [*a, *b]):
            yield from _compare_sides(name, a, b)
        case list(), list():
            gone = [FactRow(name, str(item), "yes", "no", gates) for item in a if item not in b]
            new = [FactRow(name, str(item), "no", "yes", gates) for item in b if item not in a]
            yield from (*gone, *new)
        case _ if a != b:
            yield FactRow(name, "", _format_value(a), _format_value(b), gates)


def _compare_sides(
    name: str, a: list[dict[str, Any]], b: list[dict[str, Any]]
) -> Iterator[FactRow]:
    """Yield what differs of parameters or results: their number, or one by one."""
    if len(a) != len(b):
        yield FactRow(name, "", f"{len(a)} of them", f"{len(b)}", gates=True)
        return
    for number, (one, other) in enumerate(zip(a, b, strict=True)):
        for key in sorted({*one, *other}):
            before, after = one.get(key), other.get(key)
            if before != after:
                gates = key not in _UNSAID or None not in {before, after}
                yield FactRow(
                    f"{name}[{number}]", key, _format_value(before), _format_value(after), gates
                )


def _format_value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not said" if value is None else str(value)
