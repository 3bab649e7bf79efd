"""The job that stands for a root cause: where it is seen with the least. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.errors import UsageError
from conformance.model.outcome import Conformance, Outcome, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.cells.cell import Cell
    from conformance.engine.root_causes import RootCause
    from conformance.model.case import Case
    from conformance.model.record import Record


def why_not(cause: RootCause) -> str:
    """Return why a cause is not looked into, empty if it can be.

    Args:
        cause: The cause.
    """
    if not cause.telling:
        return "it says nothing about JAX"
    if all(record.verdict is Verdict.FLAKY for record in cause.records):
        return "its jobs do not show the same twice"
    return ""


def stands_for(
    cause: RootCause, cells: Mapping[str, Cell], cases: Mapping[str, Case]
) -> tuple[Record, Case, Cell]:
    """Return the job that stands for a cause, with its case and cell.

    One process comes before several, CPUs before accelerators, a plain cell before one with
    options; then what is wrong by itself before what is only not as recorded, and that before what
    deviates as declared, wherever it is right, too; few devices, and what takes least time.

    Args:
        cause: The cause.
        cells: The cells that are known, by id.
        cases: The cases that are, by id.

    Raises:
        UsageError: If neither case nor cell of any of its jobs is known.
    """
    known = [
        record
        for record in cause.records
        if record.verdict is not Verdict.FLAKY and record.cell in cells and record.case in cases
    ]
    if not known:
        first = cause.records[0]
        raise UsageError(
            f"{first.case} on {first.cell}: the case or the cell is not there any more, "
            "expected both as they were in the run"
        )
    one = min(known, key=lambda record: _needs(record, cells[record.cell], cases[record.case]))
    return one, cases[one.case], cells[one.cell]


def _needs(record: Record, cell: Cell, case: Case) -> tuple[object, ...]:
    """Return what a job needs, in the order of what counts."""
    options = (cell.deps != "era", cell.pins, cell.x64, cell.config, cell.xla_flags)
    return (
        cell.place.processes > 1,
        cell.place.kind != "cpu",
        sum(map(bool, options)),
        _shown(record),
        case.kind != "program",
        case.devices or cell.devices,
        record.seconds.get("job", sum(record.seconds.values())),
        record.case,
        record.cell,
    )


def _shown(record: Record) -> int:
    """Return how well a job shows by itself that something is wrong: less is better."""
    deviates = record.conformance is Conformance.DEVIATES or record.outcome is not Outcome.OK
    if deviates and record.verdict is Verdict.CHANGED:
        return 2
    return 0 if deviates else 1
