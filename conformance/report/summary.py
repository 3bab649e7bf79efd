"""A run in numbers: counts, groups of what is unexpected, and the JSON contract."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from conformance.engine.runner import unexpected
from conformance.model.outcome import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.engine.plan import Plan
    from conformance.model.record import Record


def counts(records: Iterable[Record]) -> dict[str, int]:
    """Return how many records have each verdict, in the order of the verdicts."""
    found = Counter(record.verdict for record in records)
    return {str(verdict): found[verdict] for verdict in Verdict if found[verdict]}


def run_json(
    run: str,
    code: int,
    plan: Plan,
    identities: Mapping[str, Mapping[str, Any]],
    records: Sequence[Record],
) -> dict[str, Any]:
    """Return a run as the `--json` of `conformance run` holds it.

    Args:
        run: Run id.
        code: Exit status.
        plan: What was planned.
        identities: What the workers said they are, by cell id; empty for a cell that needed none.
        records: Every job's record.

    Returns:
        `run`, `exit`, `counts`, `cells`, `results`, `exclusions`.
    """
    return {
        "run": run,
        "exit": int(code),
        "counts": counts(records),
        "cells": [
            {
                "id": planned.cell.id,
                "identity": identities.get(planned.cell.id, {"versions": planned.versions}),
                "lock": planned.lock_hash,
            }
            for planned in plan.cells
        ],
        "results": records,
        "exclusions": plan.exclusions,
    }


def root_causes(records: Iterable[Record]) -> list[tuple[str, list[Record]]]:
    """Return what is unexpected, grouped by what is the same about it, largest group first.

    Args:
        records: Judged records.

    Returns:
        For each group its verdict and first reason, and its records.
    """
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        if unexpected(record) or record.verdict is Verdict.INFRA:
            reason = record.reasons[0] if record.reasons else ""
            case = "" if record.verdict is Verdict.INFRA else record.case
            groups.setdefault((str(record.verdict), case, reason), []).append(record)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    return [(key[2], members) for key, members in ordered]
