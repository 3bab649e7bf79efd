"""`pytest cases --matrix smoke -n 2`: the jobs of a plan as pytest items.

A thin front over the engine: markers, -k, --lf, xdist and JUnit XML work as for any test. The
plugin does nothing unless --matrix or --cell is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from conformance.app.context import ProjectContext
from conformance.app.run import describe_run
from conformance.app.run_request import RunRequest
from conformance.app.session import Session
from conformance.corpus.discovery import BrokenCasesError, discover, find_duplicates
from conformance.engine.calibration import load_calibration
from conformance.engine.job import Job
from conformance.engine.local_executor import CellWorker
from conformance.engine.plan import Plan, find_exclusion_reason
from conformance.engine.runner import describe_cases
from conformance.engine.runs.directory import Results, RunDirectory
from conformance.engine.runs.stored_job import StoredJob
from conformance.errors import ConformanceError
from conformance.model.outcome import Verdict
from conformance.model.record import Record
from conformance.pytest_scheduling import make_scheduler
from conformance.report.tracebacks import render_traceback

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence

    from conformance.cells.accelerators import DeviceLock
    from conformance.engine.calibration import Calibration
    from conformance.engine.job import FinishedJob, PlannedCell
    from conformance.engine.job_runner import JobRunner
    from conformance.engine.local_executor import OpenWorker
    from conformance.model.case import Case

RECORD = "conformance_record"
"""Attribute of a test report that carries the job's record from an xdist worker."""
DIRECTORY = "conformance_directory"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the cells and of the run."""
    group = parser.getgroup("conformance", "JAX conformance cases as tests")
    group.addoption("--matrix", help="run cases in the cells of this matrix, e.g. smoke")
    group.addoption(
        "--cell", action="append", default=[], help="run cases in these cells, e.g. 0.6.2"
    )
    group.addoption(
        "--run", "--run-dir", dest="run_dir", type=Path,
        help="run directory, for `conformance accept`",
    )  # fmt: skip
    group.addoption(
        "--require-platform",
        action="store_true",
        help="fail if an accelerator (gpu, tpu) is missing instead of skipping",
    )
    group.addoption("--fresh", action="store_true", help="run jobs that have not changed too")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Register the bench if cells are selected."""
    if not (config.option.matrix or config.option.cell):
        return
    # `-n 2` sets `load`; another mode was chosen by the user, and stays.
    if getattr(config.option, "dist", "no") == "load":
        # Jobs of a cell share a worker: each worker imports jax, which takes seconds.
        config.option.dist = "loadgroup"
    try:
        bench = Bench(config)
    except ConformanceError as error:
        raise pytest.UsageError(str(error)) from None
    config.pluginmanager.register(bench, "conformance-bench")


@dataclass(eq=False)  # pytest 8 keeps its plugins in a set
class Bench:
    """The cells of a pytest session, their workers, and the run directory."""

    config: pytest.Config
    _results: Results | None = None
    _plan: dict[tuple[str, str], Path] = field(default_factory=dict)
    _cases: dict[str, Case] = field(default_factory=dict)

    def __post_init__(self) -> None:
        chosen = self.config.option.run_dir
        if self.is_writer and chosen is not None:
            RunDirectory(chosen).check_empty()
        self.context = ProjectContext(self.config.invocation_params.dir)
        matrix, selectors = self.config.option.matrix, tuple(self.config.option.cell)
        cells, _ = self.context.select_cells(matrix, selectors)
        self.preparation = Session(context=self.context).prepare(cells)

    @property
    def is_writer(self) -> bool:
        """Whether this process writes results: the controller does, not the workers of xdist."""
        return not hasattr(self.config, "workerinput")

    def reject_duplicates(self, cases: Sequence[Case]) -> None:
        """Check that no case has the id of a case of an earlier file.

        Raises:
            BrokenCasesError: If there are such cases: results are stored by id.
        """
        known = {case.id: self._cases.setdefault(case.id, case) for case in cases}
        twice = list(find_duplicates([*(c for c in known.values() if c not in cases), *cases]))
        if twice:
            raise BrokenCasesError(twice)

    @cached_property
    def directory(self) -> RunDirectory:
        """The run directory, the same in every xdist worker."""
        inherited = getattr(self.config, "workerinput", {}).get(DIRECTORY)
        if inherited is None and self.config.option.run_dir is None:
            return self.context.runs.allocate()
        return RunDirectory(Path(inherited or self.config.option.run_dir))

    @cached_property
    def calibration(self) -> Calibration:
        """The jobs that are known to be unstable on this host."""
        return load_calibration(self.context.cache)

    @cached_property
    def session(self) -> Session:
        """The session that opens the workers of the cells and stores their results."""
        option = self.config.option
        return Session(
            context=self.context, fresh=option.fresh, require_platform=option.require_platform
        )

    @cached_property
    def executor(self) -> CellExecutor:
        """Runs the jobs."""
        return CellExecutor(
            self.session.make_opener(self.preparation.locks), self.session.device_lock
        )

    @cached_property
    def runner(self) -> JobRunner:
        """Runs jobs, and judges them against the goldens of the cases."""
        return self.session.make_job_runner(self.executor, self.directory.blobs)

    def run(self, job: Job) -> Record:
        """Run one job, again if its result is unexpected, and judge it."""
        (record,) = self.runner.run_confirmed([job], self.calibration)
        return record

    def pytest_configure_node(self, node: Any) -> None:
        """Pass the run directory to an xdist worker."""
        node.workerinput[DIRECTORY] = str(self.directory.path)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Send all jobs of a cell to one xdist worker, which opens the cell once."""
        cells = {planned.cell.id for planned in self.preparation.cells}

        def find_cell(nodeid: str) -> str:
            cell, _, case = nodeid.partition("::")[2].partition("::")
            return cell if case and cell in cells else ""

        return make_scheduler(config, log, find_cell)

    def pytest_collect_file(
        self, file_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Collect case files; test modules and private modules are left to other plugins."""
        if file_path.suffix != ".py" or file_path.name.startswith(("_", "conftest", "test_")):
            return None
        return CaseFile.from_parent(parent, path=file_path, bench=self)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makemodule(
        self, module_path: Path, parent: pytest.Collector
    ) -> pytest.Collector | None:
        """Keep pytest from importing a case file that is an argument of the command line."""
        collected = self.pytest_collect_file(module_path, parent)
        return None if collected is None else _EmptyModule.from_parent(parent, path=module_path)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Put the jobs of a cell together, so that its worker is started once."""
        order = {p.cell.id: n for n, p in enumerate(self.preparation.cells)}
        # Sorting is stable: other tests come first, and the cases of a cell keep their order.
        items.sort(key=lambda i: order[i.job.planned.cell.id] if isinstance(i, CaseItem) else -1)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the record to the report of the call."""
        report = yield
        if isinstance(item, CaseItem) and call.when == "call" and item.record is not None:
            # As text: xdist sends only basic types between processes.
            setattr(report, RECORD, msgspec.json.encode(item.record).decode())
        if isinstance(item, CaseItem) and isinstance(report.longrepr, tuple):
            # A skip: it is reported at the case, not at the line of this plugin that skips.
            report.longrepr = (str(item.path), item.job.case.line, report.longrepr[2])
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the record to the run directory, if this is the controller."""
        text = getattr(report, RECORD, None)
        if text is None or not self.is_writer:
            return
        record = msgspec.json.decode(text, type=Record)
        file, _, _ = report.nodeid.partition("::")
        self._plan[record.case, record.cell] = self.config.rootpath / file
        try:
            if self._results is None:
                self._results = Results(self.directory)
                self._write_run(
                    self._list_paths()
                )  # a second time at the end: pytest may be killed
            self._results.append(record)
        except ConformanceError as error:
            # Without records the session has no result: every further test would be run for
            # nothing.
            pytest.exit(str(error), returncode=error.exit_code)

    def pytest_sessionfinish(self) -> None:
        """End the worker, and write the jobs that ran to `run.json`."""
        self.executor.close()
        if self._results is None:
            return
        self._results.close()
        self._write_run(dict.fromkeys(self._plan.values()))

    def _write_run(self, paths: Iterable[Path]) -> None:
        request = RunRequest(
            select=tuple(map(str, paths)),
            matrix=self.config.option.matrix,
            cell=tuple(self.config.option.cell),
        )
        plan = Plan(jobs=(), exclusions=self.preparation.exclusions, cells=self.preparation.cells)
        root = self.context.project.root
        # Only xdist's workers know the jobs before they end.
        ran = {case for case, _ in self._plan}
        files = dict.fromkeys(self._plan.values())
        cases = [c for c in discover(files, self.context.case_index) if c.id in ran]
        info = replace(
            describe_run(request, plan, root),
            plan=tuple(self._plan),
            cases=describe_cases(cases, root),
        )
        self.directory.write_run(info)

    def _list_paths(self) -> list[Path]:
        return [Path(argument.partition("::")[0]).resolve() for argument in self.config.args]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the run directory, and the excluded cells."""
        for exclusion in self.preparation.exclusions:
            terminalreporter.write_line(f"excluded {exclusion.cell}: {exclusion.reason}")
        if self._results is not None:
            terminalreporter.write_line(f"results in {self.directory.path}")


@dataclass
class CellExecutor:
    """Runs one job after another; the worker of a cell lives until a job of another cell comes.

    Attributes:
        open_worker: Opens the worker of a cell.
        device_lock: Lock of the accelerators of this host.
        identities: Always empty: the plugin does not report them.
    """

    open_worker: OpenWorker
    device_lock: DeviceLock
    identities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    _current: CellWorker | None = None

    def run(self, jobs: Iterable[Job]) -> Generator[FinishedJob]:
        """Run jobs, see `Executor.run`."""
        for job in jobs:
            if self._current is None or self._current.planned is not job.planned:
                self.close()
                self._current = CellWorker(job.planned, self.open_worker, self.device_lock)
            yield self._current.run(job)

    def close(self) -> None:
        """End the worker that is running."""
        if self._current is not None:
            self._current.close()
            self._current = None


class _EmptyModule(pytest.File):
    """A module without tests, in place of a case file that is collected by `CaseFile`."""

    def collect(self) -> Iterator[pytest.Item]:
        return iter(())


class CaseFile(pytest.File):
    """A case file: an item for each case and cell."""

    def __init__(self, *, bench: Bench, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bench = bench

    def collect(self) -> Iterator[pytest.Collector]:
        """Read the file statically and yield a node for each cell."""
        try:
            cases: Sequence[Case] = discover([self.path.resolve()], self.bench.context.case_index)
            self.bench.reject_duplicates(cases)
        except BrokenCasesError as error:
            raise self.CollectError(str(error)) from None
        for planned in self.bench.preparation.cells:
            yield CellNode.from_parent(self, name=planned.cell.id, planned=planned, cases=cases)


class CellNode(pytest.Collector):
    """The cases of a file in one cell."""

    def __init__(self, *, planned: PlannedCell, cases: Sequence[Case], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.planned = planned
        self.cases = cases

    def collect(self) -> Iterator[pytest.Item]:
        """Yield an item for each case."""
        for case in self.cases:
            name = case.id.partition("/")[2]
            # As text: pytest 9 then parses `[param]` as it does in its cache of failed tests,
            # where an id made from the name alone would never be found again by --lf and --ff.
            nodeid = f"{self.nodeid}::{name}"
            yield CaseItem.from_parent(
                self, name=name, nodeid=nodeid, case=case, planned=self.planned
            )


class CaseItem(pytest.Item):
    """One job as a test."""

    def __init__(self, *, case: Case, planned: PlannedCell, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.job = Job(case=case, planned=planned)
        self.exclusion = find_exclusion_reason(case, planned)
        self.record: Record | None = None
        for word in (case.family, case.kind, f"jax{planned.release}"):
            self.extra_keyword_matches.add(word)

    def runtest(self) -> None:
        """Run the job; the verdict is the result."""
        if self.exclusion:
            pytest.skip(self.exclusion)
        bench = self.config.pluginmanager.get_plugin("conformance-bench")
        assert isinstance(bench, Bench)  # noqa: S101 - registered before anything is collected
        self.record = bench.run(self.job)
        reasons = "\n".join(self.record.reasons)
        # Not a skip: a job that could not run must not look as if it had passed.
        if self.record.unexpected or self.record.verdict is Verdict.INFRA:
            side = StoredJob(self.record, bench.directory.blobs)
            lines = render_traceback(side, [str(bench.context.project.root)])
            raise UnexpectedError("\n".join([f"{self.record.verdict}: {reasons}", *lines]))
        if self.record.verdict is Verdict.EXCLUDED:
            pytest.skip(reasons)
        if self.record.verdict is Verdict.KNOWN:
            pytest.xfail(reasons)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the reasons and the job's own traceback, without that of this plugin."""
        if isinstance(excinfo.value, (UnexpectedError, ConformanceError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the file and the line of the case, for editors and reports."""
        return self.path, self.job.case.line - 1, self.name


class UnexpectedError(Exception):
    """A job whose verdict makes the run fail."""
