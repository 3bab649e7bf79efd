"""Facts of many records, held once: most releases compile a case to the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from conformance.model.record import Record

    Key: TypeAlias = tuple[str | None, ...]


class SharedFacts:
    """One object for all facts that are equal; a run holds thousands of records."""

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, Any]] = {}

    def of(self, record: Record) -> dict[str, Any]:
        """Return a record's facts, the same object for all records that state the same.

        Args:
            record: The record; facts are stated by its HLO, by the compiled object's layout and by
                the analyses of XLA.
        """
        hlo = record.ir.get("hlo")
        if hlo is None or not hlo.structure:
            return record.facts
        key = (hlo.structure, *map(record.artifacts.get, ("layout", "cost", "memory")))
        return self._known.setdefault(key, record.facts)
