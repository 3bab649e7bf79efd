"""Batches of tests of a suite: what a node needs to know of the suite, and how it runs them."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from conformance.engine.scheduler import JobUnits
from conformance.suites.catalogue.checkouts import Checkout
from conformance.suites.catalogue.definition import Definition, NamedSuite
from conformance.suites.catalogue.standards import Standards
from conformance.suites.running.cells import SuiteCells
from conformance.suites.running.collection import Collection, Test
from conformance.suites.running.worker_pool import SuiteWorkerPool
from conformance.suites.suite import Examples, Suite

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, MutableMapping, Sequence

    from conformance.cells.accelerators import DeviceLock
    from conformance.cells.lock import Lock
    from conformance.engine.job import FinishedJob, Job
    from conformance.suites.running.executor import CollectedSuite


class SuiteSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A suite that is collected in a cell; the fields are those of `Suite` and `Collection`.

    Attributes:
        name: Name of the suite, empty if its tests were requested by path.
        definition_folder: Folder of the definition of a named suite.
        checkout_folder: Folder of the files of a named suite.
        own_checkout: Whether these files are the user's own.
        root: Folder that node ids start from.
        ini: Configuration file of pytest, empty for none.
        tests: Names of the tests that are collected in the cell.
    """

    paths: tuple[str, ...]
    arguments: tuple[str, ...]
    timeout: float
    hash: str
    folder: str
    name: str
    definition: Definition
    definition_folder: str
    checkout_folder: str
    own_checkout: bool
    examples: Examples
    standards: Standards | None
    root: str
    ini: str
    tests: tuple[str, ...]

    @classmethod
    def of(cls, collected: CollectedSuite, cell: str) -> SuiteSpec:
        """Return the specification of a suite in a cell.

        Args:
            collected: The suite.
            cell: Id of the cell.
        """
        suite, checkout = collected.suite, collected.suite.checkout
        return cls(
            paths=suite.paths, arguments=suite.arguments, timeout=suite.timeout, hash=suite.hash,
            folder=str(suite.folder), name="" if suite.named is None else suite.named.name,
            definition=suite.definition,
            definition_folder="" if suite.named is None else str(suite.named.folder),
            checkout_folder="" if checkout is None else str(checkout.folder),
            own_checkout=checkout is not None and checkout.own,
            examples=suite.examples, standards=suite.standards,
            root=collected.project.root, ini=collected.project.ini,
            tests=tuple(test.name for test in collected.collections[cell].tests),
        )  # fmt: skip

    def find_problem(self) -> str:
        """Return why this host cannot run the suite, empty if it sees the files of the suite."""
        # A path may name a test in a file.
        needed = (self.folder, *(path.partition("::")[0] for path in self.paths))
        missing = next((path for path in needed if not Path(path).exists()), "")
        return missing and f"does not see {missing}, a file of the suite"

    def run(
        self,
        jobs: Sequence[Job],
        locks: Mapping[str, Lock],
        cache: Path,
        device_lock: DeviceLock,
        identities: MutableMapping[str, Mapping[str, object]],
    ) -> Generator[FinishedJob]:
        """Run tests of the suite in one cell.

        Args:
            jobs: The tests, those of a file together.
            locks: Lock of the cell, by its id.
            cache: Cache folder of this host.
            device_lock: Lock of the accelerators of this host.
            identities: Receives the facts that the sessions report, by cell id.

        Yields:
            The finished jobs.
        """
        suite = self._make_suite()
        # Where the tests were collected, the caches of sessions see the whole cell.
        known = Collection(
            root=self.root, ini=self.ini, tests=tuple(Test(name=name) for name in self.tests)
        )
        cells = SuiteCells(locks, cache, suite)
        pool = SuiteWorkerPool(suite, jobs[0].planned, cells, device_lock, known)
        pool.assign(jobs, share=1, project=known, identities=identities)
        units = [list(own) for _, own in groupby(jobs, lambda job: job.case.file)]
        try:
            yield from pool.work(JobUnits(units))
        finally:
            pool.close()

    def _make_suite(self) -> Suite:
        named = checkout = None
        if self.name:
            named = NamedSuite(
                name=self.name, folder=Path(self.definition_folder), definition=self.definition
            )
        if self.checkout_folder:
            folder = Path(self.checkout_folder)
            checkout = Checkout(folder=folder, own=self.own_checkout, content="")
        return Suite(
            paths=self.paths, arguments=self.arguments, timeout=self.timeout, hash=self.hash,
            folder=Path(self.folder), named=named, checkout=checkout, examples=self.examples,
            standards=self.standards,
        )  # fmt: skip


def locate_tests(jobs: Sequence[Job]) -> list[Job]:
    """Return tests with absolute paths of their files: a node has another working directory.

    Args:
        jobs: Tests whose files are relative to the working directory of this process.
    """
    return [replace(job, case=replace(job.case, file=job.case.file.absolute())) for job in jobs]
