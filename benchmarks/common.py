"""What the benchmarks share: real cells of the project's own matrix, and medians."""

from __future__ import annotations

import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.app.context import ProjectContext
from conformance.app.session import Session
from conformance.corpus.discovery import discover, find_case_files
from conformance.engine.job import Job
from conformance.engine.preparation import Provider

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.engine.job import PlannedCell
    from conformance.engine.preparation import Preparation

ROOT = Path(__file__).resolve().parent.parent
THROUGHPUT = Path(__file__).resolve().parent / "cases_throughput"


def setting() -> ProjectContext:
    """Return the context of this checkout."""
    return ProjectContext(ROOT)


def prepared(*selectors: str) -> Preparation:
    """Return the cells that selectors name, with their locks."""
    here = setting()
    cells, _ = here.select_cells(None, selectors)
    return Session(context=here).prepare(cells)


def provider(preparation: Preparation, *, spawn: bool = False) -> Provider:
    """Return what opens the cells' workers."""
    return Provider(preparation.locks, setting().cache, spawn=spawn)


def throughput_jobs(planned: PlannedCell) -> list[Job]:
    """Return the timed jobs in a cell."""
    cases = discover(find_case_files(THROUGHPUT))
    return [Job(case=case, planned=planned) for case in cases]


def seconds(work: Callable[[], object]) -> float:
    """Return the wall-clock seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def line(what: str, values: list[float], unit: str = "s") -> str:
    """Return a line with the median and the range of some values."""
    median = statistics.median(values)
    return f"{what:44s} {median:9.3f} {unit}   ({min(values):.3f} .. {max(values):.3f})"
