"""Claims that a reproduction asserts in addition: the facts that are not as recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from conformance.judge.ir import changed_facts
from conformance.model.outcome import Outcome
from conformance.triage.repro.facts import READINGS

if TYPE_CHECKING:
    from conformance.model.case import Case
    from conformance.model.golden import GoldenEntry
    from conformance.model.record import Record


def with_recorded(case: Case, record: Record, golden: GoldenEntry | None) -> Case:
    """Return a case that claims the facts of its golden that a job does not state.

    Args:
        case: The case.
        record: Its record.
        golden: Its golden, if there is one.
    """
    if golden is None or record.outcome is not Outcome.OK:
        return case
    recorded = {
        name: golden.facts[name]
        for name in READINGS
        if name in golden.facts and name not in case.facts
        and any(changed_facts({name: record.facts.get(name)}, {name: golden.facts[name]}))
    }  # fmt: skip
    return replace(case, facts={**case.facts, **recorded}) if recorded else case
