"""Which cases are measured, and in which order within a budget."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, cast

from conformance.app.bench.choice import TURN, limit_time, order_cases
from conformance.errors import UsageError
from conformance.model.outcome import Verdict
from conformance.model.record import IrRecord
from tests.builders import case
from tests.engine.records import record
from tests.engine.worlds import planned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.app.context import ProjectContext
    from conformance.model.record import Record

CELLS = [planned("0.6.0").cell, planned("0.6.1").cell]
CASES = [case(f"f/c{number}") for number in range(30)]
DAY = date(2026, 5, 1)


class Runs:
    """The runs of a project, of which the newest has these records."""

    def __init__(self, records: Sequence[Record] | None) -> None:
        self.records = records

    def find_latest(self) -> Runs:
        """Return the newest run."""
        if self.records is None:
            raise UsageError("no run")
        return self

    def read_records(self) -> list[Record]:
        """Return its records."""
        return list(self.records or ())


def project(records: Sequence[Record] | None) -> ProjectContext:
    """Return a project whose newest run has these records."""
    return cast("ProjectContext", type("Context", (), {"runs": Runs(records)}))


def observed(name: str, cell: Any, form: str) -> Record:
    """Return the record of a case with one IR."""
    irs = {"hlo": IrRecord(exact=form, canonical=form)}
    return record(name, cell.id, Verdict.MATCH, ir=irs)


def order(records: Sequence[Record] | None, day: date = DAY) -> list[str]:
    """Return the ids in their order."""
    return [one.id for one in order_cases(project(records), CASES, CELLS, day)]


def test_cases_whose_irs_differ_come_first() -> None:
    """The time of the others can have changed, too, but rarely has."""
    records = [
        observed("f/c7", CELLS[0], "one"), observed("f/c7", CELLS[1], "other"),
        observed("f/c8", CELLS[0], "one"), observed("f/c8", CELLS[1], "one"),
    ]  # fmt: skip
    found = order(records)
    assert found[0] == "f/c7"
    assert sorted(found) == sorted(one.id for one in CASES)


def test_every_day_begins_with_other_cases() -> None:
    """After some days each case has been among the first."""
    days = [order(None, DAY + timedelta(days=n))[:TURN] for n in range(len(CASES))]
    assert days[0] != days[1]
    assert {name for first in days for name in first} == {one.id for one in CASES}


def test_no_case_begins_after_the_time() -> None:
    """The one that has begun ends."""
    seconds = iter(range(100))
    assert list(limit_time(CASES, 3.0, lambda: next(seconds))) == CASES[:2]
