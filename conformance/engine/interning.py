"""Facts of many records, held once: most releases compile a case to the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from conformance.model.record import Record

    Key: TypeAlias = tuple[str | None, ...]

SOURCES: Final = ("layout", "cost", "memory")
"""Artifacts that state facts in addition to the optimised HLO: the compiled object's layout, and
XLA's analyses. Records whose HLO and sources are the same state the same facts."""


class FactInterner:
    """One object for all facts that are equal; a run holds thousands of records."""

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, Any]] = {}

    def of(self, record: Record) -> dict[str, Any]:
        """Return a record's facts, the same object for all records that state the same.

        Args:
            record: The record.
        """
        hlo = record.ir.get("hlo")
        if hlo is None or not hlo.structure:
            return record.facts
        key = (hlo.structure, *map(record.artifacts.get, SOURCES))
        return self._known.setdefault(key, record.facts)
