"""Helpers of the benchmarks: real cells of the matrix of this checkout, times and medians."""

from __future__ import annotations

import statistics
import tarfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.app.context import ProjectContext
from conformance.app.session import Session
from conformance.cells.package_index import download_sdist, open_index
from conformance.cells.release_index import find_index
from conformance.corpus.discovery import discover, find_case_files
from conformance.engine.job import Job
from conformance.engine.workers.preparation import Provider

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.engine.job import PlannedCell
    from conformance.engine.workers.preparation import Preparation

ROOT = Path(__file__).resolve().parent.parent
THROUGHPUT = Path(__file__).resolve().parent / "cases_throughput"


def checkout_context() -> ProjectContext:
    """Return the context of this checkout."""
    return ProjectContext(ROOT)


def prepare(*selectors: str) -> Preparation:
    """Return the cells that selectors name, with their locks."""
    context = checkout_context()
    cells, _ = context.select_cells(None, selectors)
    return Session(context=context).prepare(cells)


def make_provider(preparation: Preparation, *, spawn: bool = False) -> Provider:
    """Return the provider that opens workers of the prepared cells."""
    return Provider(preparation.locks, checkout_context().cache, spawn=spawn)


def make_throughput_jobs(planned: PlannedCell) -> list[Job]:
    """Return the timed jobs in a cell."""
    cases = discover(find_case_files(THROUGHPUT))
    return [Job(case=case, planned=planned) for case in cases]


def fetch_sources(name: str, version: str, folder: Path) -> Path:
    """Return the sources of a library, from its source distribution, below a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with open_index(find_index()) as client:
        archive = download_sdist(client, name, version, folder)
    if archive is None:
        raise FileNotFoundError(f"{name} {version}: the index has no source distribution")
    with tarfile.open(archive) as file:
        (top,) = {Path(one).parts[0] for one in file.getnames()}
        file.extractall(folder, filter="data")
    return folder / top


def time_call(work: Callable[[], object]) -> float:
    """Return the wall-clock seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def format_line(what: str, values: list[float], unit: str = "s") -> str:
    """Return a line with the median and the range of some values."""
    median = statistics.median(values)
    return f"{what:44s} {median:9.3f} {unit}   ({min(values):.3f} .. {max(values):.3f})"
