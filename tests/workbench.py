"""A real worker in a real cell, and case files written on the spot."""

from __future__ import annotations

import textwrap
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from conformance.cache_folder import cache_root
from conformance.cells.lock_resolution import find_lock
from conformance.cells.provision import provision
from conformance.cells.releases import load_releases
from conformance.cells.selectors import select_cells
from conformance.cells.stored_environments import ENVIRONMENTS
from conformance.corpus.discovery import discover
from conformance.engine.job import Job, PlannedCell
from conformance.engine.workers.client import Worker
from conformance.model.value import decode_value

if TYPE_CHECKING:
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import FinishedJob
    from conformance.model.value import Leaf, Value

MATRICES = Path(__file__).resolve().parents[1] / "matrix"
OLD, NEWEST = "0.5.3", "0.12.0.1"
HEAD = """\
import os, signal, sys, threading, time
import numpy as np
from conformance.kit import Observed, Program, probe, program, raises
"""


@cache
def cell_of(selector: str) -> Cell:
    """Return the cell of an id, or the default cell of a release."""
    (cell,) = select_cells(selector, load_releases(MATRICES))
    return cell


@cache
def lock_of(cell: Cell) -> Lock:
    """Return the committed lock of a cell."""
    releases = load_releases(MATRICES)
    return find_lock(cell, releases, folders=[MATRICES], cache=cache_root())


def planned_cell(selector: str) -> PlannedCell:
    """Return the cell of an id, or the default cell of a release, as a plan has it."""
    cell = cell_of(selector)
    lock = lock_of(cell)
    return PlannedCell(cell=cell, versions=lock.pins, lock_hash=lock.hash, cell_hash=lock.hash[:16])


def python_of(planned: PlannedCell) -> Path:
    """Return the interpreter of a planned cell, provisioned from its committed lock."""
    lock = lock_of(planned.cell)
    return provision(planned.cell, lock=lock, cache=cache_root()).python


def make_test_cache(folder: Path) -> Path:
    """Return an empty cache folder that shares only the environments of the user's cache.

    Environments take long to provision, and no test changes them.

    Args:
        folder: The cache folder, created if it is missing.
    """
    environments = cache_root() / ENVIRONMENTS
    environments.mkdir(exist_ok=True)
    folder.mkdir(exist_ok=True)
    (folder / ENVIRONMENTS).symlink_to(environments)
    return folder


def source_of(body: str, decorator: str = "probe()", top: str = "") -> str:
    """Return a case file with one case named `case`."""
    code = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"{HEAD}{textwrap.dedent(top)}\n@{decorator}\ndef case(env):\n{code}\n"


def write_case(folder: Path, source: str, topic: str = "topic") -> Path:
    """Write a case file of the family `family`."""
    file = folder / "family" / f"{topic}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(source)
    return file


def value_of(finished: FinishedJob) -> Value:
    """Return the value a job observed."""
    assert finished.error is None, finished.error
    return decode_value(finished.blobs["value"])


def leaf_of(finished: FinishedJob) -> Leaf:
    """Return the only leaf a job observed."""
    (leaf,) = value_of(finished).leaves
    return leaf


class Bench:
    """A worker of one cell, and a folder that case files are written to.

    Args:
        planned: Cell of the worker.
        folder: Folder for case files.
        worker: A running worker; it is started if missing.
        spawn: Whether each job gets a fresh interpreter.
    """

    def __init__(
        self,
        planned: PlannedCell,
        folder: Path,
        worker: Worker | None = None,
        *,
        spawn: bool = False,
    ) -> None:
        self.planned = planned
        self.folder = folder
        self.worker = worker or Worker(
            python_of(planned), variables=planned.cell.place.environment, spawn=spawn
        )

    @property
    def pid(self) -> int:
        """Process id of the worker."""
        return self.worker._process.pid

    def at(self, folder: Path) -> Bench:
        """Return the same worker with another folder."""
        return Bench(self.planned, folder, self.worker)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.worker.close()

    def jobs(self, source: str, topic: str = "topic") -> list[Job]:
        """Return the jobs of a case file's source."""
        cases = discover([write_case(self.folder, source, topic)])
        return [Job(case=case, planned=self.planned) for case in cases]

    def job(self, body: str, decorator: str = "probe()", top: str = "", **more: Any) -> Job:
        """Return the job of a case with this body."""
        (job,) = self.jobs(source_of(body, decorator, top), **more)
        return job

    def run(self, body: str, decorator: str = "probe()", top: str = "", **more: Any) -> FinishedJob:
        """Run a case with this body."""
        return self.worker.run(self.job(body, decorator, top, **more))
