"""What goldens have of every job of a plan, without running or reading more than their spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.record_judge import golden_variant
from conformance.golden.layout import ENDING
from conformance.golden.spans import lookup
from conformance.golden.store import GoldenStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.engine.job import Job
    from conformance.engine.plan import Plan


def recorded_outcomes(plan: Plan) -> Iterator[tuple[Job, str]]:
    """Yield the jobs whose release lies within a recorded span, each with what names its ending.

    Args:
        plan: The jobs.

    Raises:
        GoldenError: If a file is corrupt.
    """
    stores: dict[Path, GoldenStore] = {}
    for job in plan.jobs:
        root = job.case.families
        document = stores.setdefault(root, GoldenStore(root)).document(job.case)
        if document is None:
            continue
        spans = document.variants.get(golden_variant(job), {}).get(ENDING, ())
        found = lookup(spans, job.planned.release)
        if found is not None and found.exact:
            yield job, found.span.content
