"""A library in a cell: installed, imported and tested."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.app.session import Session
from conformance.app.suites.cells import PYTEST, SuiteInCells
from conformance.cells.child_processes import CHILD_PROCESSES
from conformance.cells.disk import Removal, prune
from conformance.cells.lock_resolution import find_lock
from conformance.cells.provision import get_environment_folder, provision
from conformance.cells.stored_environments import StoredEnvironment
from conformance.ecosystem.outcome import IMPORT, Failure, LibraryOutcome
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.calibration import Calibration
from conformance.engine.job import Job
from conformance.engine.workers.environment import make_option_variables, make_worker_environment
from conformance.engine.workers.preparation import prepare_cells
from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.files import MALFORMED, describe_os_error
from conformance.judge.errors import make_signature
from conformance.model.outcome import Outcome, Verdict
from conformance.scratch import temporary_folder
from conformance.suites.running.cells import BYTECODE
from conformance.suites.suite import make_suite

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from conformance.app.context import ProjectContext
    from conformance.app.ecosystem.sources import LibrarySources
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.ecosystem.library import Library, SdistTests
    from conformance.engine.job import Executor, FinishedJob, PlannedCell, RecordedJob
    from conformance.model.case import Case
    from conformance.model.record import Record
    from conformance.suites.suite import Suite

IMPORT_TIMEOUT: Final = 180.0
"""Seconds in which the modules of a library must import."""
TEST_TIMEOUT: Final = 60.0
"""Seconds that one test may take."""
REMOVAL_PATIENCE: Final = 10.0
"""Seconds in which an environment that is still in use is tried to be removed."""
LONGEST: Final = 300
"""Characters of an error that a record keeps."""
_IMPORT_SCRIPT: Final = """
import importlib, json, sys, traceback
try:
    for name in sys.argv[1:]:
        importlib.import_module(name)
except BaseException as error:
    frames = traceback.extract_tb(error.__traceback__)
    frames = [f for f in frames if "importlib" not in f.filename and f.filename != "<string>"]
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    print("\\n" + json.dumps([type(error).__name__, str(error), where]))
"""
_PACKAGES: Final = "site-packages/"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """The results of the libraries in a cell.

    Attributes:
        outcome: The outcome.
        reason: Requirement that forbids the installation, or why there is no outcome.
        tests: Number of tests that ran.
        failures: The import or the tests that fail.
        flaky: Tests whose attempts disagree.
        packages: Version of each package of the environment, empty if there is none.
    """

    outcome: LibraryOutcome
    reason: str = ""
    tests: int = 0
    failures: tuple[Failure, ...] = ()
    flaky: tuple[str, ...] = ()
    packages: Mapping[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class CellTester:
    """Tests libraries in cells, each in an environment of its own.

    Attributes:
        context: The project.
        sources: Tests of libraries.
        bytecode: Folder of bytecode that environments share.
        fresh: Whether cached results of tests are ignored.
        repeat: Whether tests that pass run twice, too.
        keep: Whether the environment is kept.
    """

    context: ProjectContext
    sources: LibrarySources
    bytecode: Path
    fresh: bool = False
    repeat: bool = False
    keep: bool = False
    _tested: dict[object, CellResult] = field(default_factory=dict)
    """Results by packages: two policies may choose the same ones."""

    def test(self, cell: Cell, libraries: Sequence[Library]) -> CellResult:
        """Install, import and test libraries.

        Args:
            cell: The cell, which pins a version of each library.
            libraries: The libraries.

        Returns:
            The result; `unknown` if the host or the package index fails.
        """
        # Without the additional packages of cells: a library must import in a user's environment.
        releases = replace(self.context.releases, packages=())
        cache = self.context.cache
        try:
            lock = find_lock(cell, releases, folders=(), cache=cache)
        except UsageError as error:
            reason = str(error).removeprefix(f"{cell.id}: ")
            return CellResult(outcome=LibraryOutcome.NOT_INSTALLABLE, reason=reason)
        except ConformanceError as error:
            return CellResult(outcome=LibraryOutcome.UNKNOWN, reason=str(error))
        packages = (*(one.name for one in libraries), *lock.pins.items())
        if packages not in self._tested:
            self._tested[packages] = self._test_locked(cell, lock, libraries)
        return self._tested[packages]

    def _test_locked(self, cell: Cell, lock: Lock, libraries: Sequence[Library]) -> CellResult:
        releases, cache = replace(self.context.releases, packages=()), self.context.cache
        wanted = [PYTEST, *(text for one in libraries for text in _list_requirements(one))]
        found = prepare_cells(
            [cell], releases, folders=(), cache=cache, wanted=tuple(dict.fromkeys(wanted)),
            passed=self.context.passed_variables,
        )  # fmt: skip
        for problem in [one.reason for one in found.exclusions]:
            return CellResult(outcome=LibraryOutcome.UNKNOWN, reason=f"its tests: {problem}")
        (planned,) = found.cells
        if planned.failure or planned.missing:
            return CellResult(
                outcome=LibraryOutcome.UNKNOWN, reason=planned.failure or planned.missing
            )
        try:
            return self._test_installed(planned, lock, libraries)
        except ConformanceError as error:
            return CellResult(outcome=LibraryOutcome.UNKNOWN, reason=str(error))
        finally:
            if not self.keep:
                self._remove(planned, lock)

    def _test_installed(
        self, planned: PlannedCell, lock: Lock, libraries: Sequence[Library]
    ) -> CellResult:
        python = provision(planned.cell, lock=lock, cache=self.context.cache).python
        with self._share_bytecode(planned, python.parent.parent):
            results = [self._run_tests(planned, lock, library) for library in libraries]
            failures = tuple(one for result in results for one in result.failures)
            modules = [module for library in libraries for module in library.imports]
            # The program imports the modules, too: without failures there is nothing to find.
            failure = import_modules(python, planned, modules) if failures else None
        if failure is not None:
            return CellResult(
                outcome=LibraryOutcome.IMPORT_FAILS, failures=(failure,), packages=lock.pins
            )
        return CellResult(
            outcome=LibraryOutcome.TESTS_FAIL if failures else LibraryOutcome.OK,
            tests=sum(result.tests for result in results), failures=failures,
            flaky=tuple(name for result in results for name in result.flaky),
            packages=lock.pins,
        )  # fmt: skip

    def _run_tests(self, planned: PlannedCell, lock: Lock, library: Library) -> CellResult:
        file = self.sources.write_program(library)
        program = make_suite([str(file)], timeout=TEST_TIMEOUT, start=file.parent)
        records = self._run_suite(planned, lock, program)
        if any(record.case.endswith(".py") for record in records):
            return summarize_tests(records)  # the module does not import, nor do those of its own
        own = library.tests
        if own is not None:
            folder = self.sources.fetch_tests(library, planned.versions[library.name])
            if folder is not None:
                suite = make_suite(
                    [str(folder / own.path), *own.arguments], timeout=TEST_TIMEOUT, start=folder
                )
                records += self._run_suite(planned, lock, suite, own)
        return summarize_tests(records)

    def _run_suite(
        self, planned: PlannedCell, lock: Lock, suite: Suite, limits: SdistTests | None = None
    ) -> list[Record]:
        """Return the records of the tests of a suite, or of a sample within limits."""
        inside = SuiteInCells(
            suite, self.context, {planned.cell.id: lock}, slots=1, fresh=self.fresh
        )
        cases, executor = inside.collect([planned])
        chosen = cases if limits is None else sample_cases(cases, limits.sample)
        jobs = [Job(case=case, planned=planned) for case in chosen]
        limited = LimitedExecutor(executor, None if limits is None else limits.seconds)
        session = Session(context=self.context, fresh=self.fresh)
        with temporary_folder("ecosystem") as scratch, closing(executor):
            runner = session.make_job_runner(limited, BlobStore(scratch))
            records = list(runner.run_confirmed(jobs, Calibration()))
            if self.repeat:
                passed = {one.case for one in records if one.outcome is Outcome.OK}
                again = [job for job in jobs if job.case.id in passed]
                second = {job.case.id: record for job, record in runner.run(again, again=True)}
                records = [compare_attempts(one, second.get(one.case, one)) for one in records]
        return records

    @contextmanager
    def _share_bytecode(self, planned: PlannedCell, folder: Path) -> Iterator[None]:
        """Share the bytecode of an environment with others of its release.

        Most of their packages are the same files, and compiling them takes half of the time.
        """
        shared = self.bytecode / f"{planned.release}-{planned.cell.python}"
        shared.mkdir(exist_ok=True)
        # Python has the bytecode of a file below this folder, by the path of the file. It is only
        # used for a file of the same size and time, which uv links from its cache.
        link = Path(planned.overlay, BYTECODE).joinpath(*folder.parts[1:])
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.is_dir() and not link.is_symlink():
            shutil.rmtree(link)
        link.unlink(missing_ok=True)
        link.symlink_to(shared)
        try:
            yield
        finally:
            link.unlink(missing_ok=True)

    def _remove(self, planned: PlannedCell, lock: Lock) -> None:
        """Remove the environment of a cell: only its record is needed."""
        folder = get_environment_folder(planned.cell, lock, self.context.cache)
        stored = StoredEnvironment(folder=folder, lock=lock.hash, used=0.0)
        # A worker that was just ended may still hold it. One that another run uses stays, and
        # `cache prune` removes it later.
        end = time.monotonic() + REMOVAL_PATIENCE
        while folder.exists():
            with suppress(InfrastructureError):
                prune([Removal(environment=stored, reason="its library was tested")])
            if time.monotonic() >= end:
                return
            time.sleep(0.1)


def _list_requirements(library: Library) -> tuple[str, ...]:
    """Return the packages that the tests of a library need."""
    return (*library.requires, *(library.tests.requires if library.tests else ()))


def import_modules(python: Path, planned: PlannedCell, modules: Sequence[str]) -> Failure | None:
    """Import modules in an environment, in a process of their own.

    Args:
        python: Interpreter of the environment.
        planned: Its cell.
        modules: Names of the modules.

    Returns:
        How the import fails, None if it does not.

    Raises:
        InfrastructureError: If the interpreter cannot be run.
    """
    variables = make_worker_environment(
        os.environ, planned.cell.place.environment, keep_python_path=False, passed=planned.passed
    ) | make_option_variables(planned)
    if planned.overlay:
        # The session that collects the tests imports the same modules next.
        variables["PYTHONPYCACHEPREFIX"] = str(Path(planned.overlay, BYTECODE))
    try:
        done = CHILD_PROCESSES.run(
            [python, "-c", _IMPORT_SCRIPT, *modules], env=variables, timeout=IMPORT_TIMEOUT,
            cwd=python.parent,
        )  # fmt: skip
    except OSError as error:
        raise InfrastructureError(f"{python}: does not run: {describe_os_error(error)}") from error
    except subprocess.TimeoutExpired:
        return Failure(test=IMPORT, error=f"no end within {IMPORT_TIMEOUT:g} s")
    with suppress(*MALFORMED):
        last = done.stdout.rstrip().rpartition("\n")[2]
        kind, message, where = msgspec.json.decode(last, type=tuple[str, str, str])
        return Failure(
            test=IMPORT, error=shorten_error(make_signature(kind, message)),
            where=shorten_place(where),
        )  # fmt: skip
    if done.returncode:
        return Failure(test=IMPORT, error=f"exit status {done.returncode}")
    return None


def sample_cases(cases: Iterable[Case], most: int) -> list[Case]:
    """Return at most some tests, the same ones on every release and host that has them.

    Args:
        cases: The tests.
        most: Number of tests.
    """
    every = list(cases)
    chosen = sorted(every, key=lambda case: hashlib.sha256(case.name.encode()).digest())[:most]
    names = {case.id for case in chosen}
    # In the order of the suite: tests of a file share its import.
    return [case for case in every if case.id in names]


@dataclass(frozen=True)
class LimitedExecutor:
    """Runs jobs of an executor until a time has passed; the others are not run.

    Attributes:
        executor: The executor.
        seconds: The time, None for no limit.
    """

    executor: Executor
    seconds: float | None

    @property
    def identities(self) -> Mapping[str, Mapping[str, Any]]:
        """Identities that the workers reported, by cell id."""
        return self.executor.identities

    def run(self, jobs: Iterable[Job]) -> Generator[FinishedJob | RecordedJob]:
        """Run jobs and yield each that ends in time."""
        end = None if self.seconds is None else time.monotonic() + self.seconds
        with closing(self.executor.run(jobs)) as finished:
            for one in finished:
                yield one
                if end is not None and time.monotonic() > end:
                    return


def compare_attempts(first: Record, second: Record) -> Record:
    """Return the record of two attempts: flaky if their outcomes differ.

    Args:
        first: Record of the first attempt.
        second: Record of the second attempt.
    """
    return first if first.outcome is second.outcome else replace(first, verdict=Verdict.FLAKY)


def summarize_tests(records: Iterable[Record]) -> CellResult:
    """Return the result of tests; those that are skipped, or lack a package, do not count.

    Args:
        records: Records of the tests.
    """
    ran = [record for record in records if record.outcome.observed]
    flaky = [record for record in ran if record.verdict is Verdict.FLAKY]
    failed = [one for one in ran if one.outcome is not Outcome.OK and one not in flaky]
    return CellResult(
        outcome=LibraryOutcome.TESTS_FAIL if failed else LibraryOutcome.OK, tests=len(ran),
        failures=tuple(_make_failure(record) for record in failed),
        flaky=tuple(record.case for record in flaky),
    )  # fmt: skip


def _make_failure(record: Record) -> Failure:
    error, where = str(record.outcome), ""
    if record.error is not None:
        error, where = record.error.signature or record.error.type, record.error.where
    return Failure(test=record.case, error=shorten_error(error), where=shorten_place(where))


def shorten_error(error: str) -> str:
    """Return an error in one line.

    Args:
        error: Type and message of the error.
    """
    line = " ".join(error.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."


def shorten_place(where: str) -> str:
    """Return a place in an installed package, or in a file of tests, without its folder.

    Args:
        where: `file:line`.
    """
    before, found, after = where.rpartition(_PACKAGES)
    return after if found else before + after.rpartition("/")[2]
