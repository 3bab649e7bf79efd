"""The cases that are measured, and their order within a budget."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from conformance.errors import ConformanceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import date

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.model.case import Case

FAMILY: Final = "performance"
"""Family that is measured by default."""
TURN: Final = 12
"""Number of cases by which the start of the order moves each day."""


def choose_measured_cases(context: ProjectContext, selection: Sequence[str]) -> list[Case]:
    """Return the cases to measure.

    Args:
        context: The project.
        selection: Selected cases and scripts; empty for the functions that the project lists, or
            else for the family `performance`.

    Raises:
        UsageError: If nothing is selected.
    """
    if not selection:
        listed = tuple(context.functions.values())
        return list(listed or context.select_cases([FAMILY]))
    found: dict[str, Case] = {}
    for select in selection:
        script = context.find_whole_script(select)
        for case in context.select_cases([select]) if script is None else [script]:
            found[case.id] = case
    return list(found.values())


def order_cases(
    context: ProjectContext, cases: Sequence[Case], cells: Sequence[Cell], day: date
) -> list[Case]:
    """Return cases whose IRs differ between the cells first, the others in turn.

    Args:
        context: The project; its newest run tells which IRs differ.
        cases: The cases.
        cells: The cells.
        day: The day: every day begins with other cases.
    """
    changed = _find_changed(context, {cell.id for cell in cells})
    first = [case for case in cases if case.id in changed]
    rest = [case for case in cases if case.id not in changed]
    start = day.toordinal() * TURN % len(rest) if rest else 0
    return [*first, *rest[start:], *rest[:start]]


def _find_changed(context: ProjectContext, cells: set[str]) -> set[str]:
    try:
        records = context.runs.find_latest().read_records()
    except ConformanceError:  # no run yet, or a damaged one: the order is no reason to end
        return set()
    forms: dict[str, set[tuple[tuple[str, str], ...]]] = {}
    for record in records:
        if record.cell in cells:
            form = tuple(sorted((name, ir.exact) for name, ir in record.ir.items()))
            forms.setdefault(record.case, set()).add(form)
    return {case for case, found in forms.items() if len(found) > 1}


def limit_time(
    cases: Iterable[Case], seconds: float, clock: Callable[[], float] = time.monotonic
) -> Iterator[Case]:
    """Yield cases until the time is over; the last one may end later.

    Args:
        cases: The cases, in the order of their importance.
        seconds: The time, from the first case on.
        clock: Seconds since some moment.
    """
    end = clock() + seconds
    for case in cases:
        if clock() >= end:
            return
        yield case
