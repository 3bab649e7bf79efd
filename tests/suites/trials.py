"""Suites on the spot, and sessions of them: of the pytest that runs these tests, without jax."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from conformance.engine.job import Job
from conformance.engine.scheduler import JobUnits
from conformance.suites.running.collection import Collection, Test, TestReport
from conformance.suites.running.session import PytestSession, SessionLaunch, make_pytest_arguments
from conformance.suites.running.worker_loop import WorkerLoop
from conformance.suites.suite import make_suite
from tests.engine.worlds import planned

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from conformance.engine.job import FinishedJob
    from conformance.suites.running.cells import ProvidedCell
    from conformance.suites.suite import Examples

ALONE = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
"""No plugin of this very environment has a say."""


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder, and return it."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def launch(
    folder: Path, *more: str, timeout: float = 20.0, memory: int = 4096, forks: bool = False,
    facts: Mapping[str, str] | None = None, examples: Examples | None = None,
) -> SessionLaunch:  # fmt: skip
    """Return what a session of all that is in a folder is started with."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "PYTHONPATH"))}
    return SessionLaunch(
        python=Path(sys.executable),
        environment={**kept, **ALONE},
        folder=Path.cwd(),
        arguments=[*make_pytest_arguments(Collection()), *more, str(folder)],
        timeout=timeout, memory=memory, forks=forks, facts=facts or {}, examples=examples,
    )  # fmt: skip


def session(folder: Path, *more: str, **options: Any) -> PytestSession:
    """Return a session that has collected all that is in a folder."""
    one = PytestSession(launch(folder, *more, **options))
    one.collect()
    return one


def collected(folder: Path, *more: str) -> Collection:
    """Return what pytest collects in a folder."""
    one = session(folder, *more)
    assert one.info.ready
    one.close()
    return one.info.collection


def reports_of(one: PytestSession, *tests: str) -> dict[str, TestReport]:
    """Run some tests of a session, all without a name, and return how each ended, by its name."""
    assert one.info.collected
    names = list(tests or (test.name for test in one.info.collected.tests))
    found = {}
    for name, following in zip(names, [*names[1:], ""], strict=True):
        report, _ = one.run(name, following, "one")
        assert report
        found[report.test] = report
    one.close()
    return found


def jobs_of(folder: Path, *names: str, **more: Any) -> list[Job]:
    """Return the tests of a folder as jobs, or those of some names, whether they are there."""
    suite = make_suite([str(folder)], timeout=more.pop("timeout", 20.0), start=folder)
    found = collected(folder)
    known = {test.name: test for test in found.tests}
    tests = tuple(
        known.get(name, Test(name=name, file=str(folder / name.partition("::")[0])))
        for name in names or known
    )
    place = planned()
    only = Collection(root=found.root, tests=tests)
    return [Job(case=case, planned=place) for case in suite.make_cases([only])]


@dataclass
class Pool:
    """A pool of sessions of a folder, in place of those of a cell.

    Attributes:
        begin: Returns the launch of a session, given whether it may fork.
        test_names: Names of the tests that were collected before.
    """

    begin: Callable[[bool], SessionLaunch]
    test_names: Container[str] = frozenset()
    verdicts: dict[str, Callable[[Job], FinishedJob]] = field(default_factory=dict)
    abandoned_files: dict[object, str] = field(default_factory=dict)
    stopped: bool = False
    root: PytestSession | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    forks: bool = True

    def get_session(self, place: ProvidedCell, wanted: Iterable[Job]) -> PytestSession:
        """Return the session that workers are forked from, otherwise a new session."""
        del place, wanted
        with self.lock:
            if self.root is not None:
                return self.root
            session = PytestSession(self.begin(self.forks))
            session.collect()
            self.forks = session.info.forks
            self.root = session if self.forks else None
            return session

    def drop(self, session: Any) -> None:
        """End a session."""
        if session is self.root:
            self.root, self.forks = None, False
        session.close()

    def close(self) -> None:
        """End the session that forks."""
        if self.root is not None:
            self.root.close()


def loop_of(pool: Any, units: JobUnits, key: str = "one") -> WorkerLoop:
    """Return a loop of a pool that needs no environment."""
    return WorkerLoop(pool, units, cast("ProvidedCell", None), key)


def run(
    jobs: Sequence[Job], begin: Callable[[bool], SessionLaunch], **options: Any
) -> list[FinishedJob]:
    """Run tests in one loop, with sessions as they are made, and return how each ended."""
    pool = Pool(begin, **options)
    loop = loop_of(pool, JobUnits([jobs]))
    try:
        return list(loop.run())
    finally:
        loop.close()
        pool.close()


def run_in(folder: Path, *names: str, **more: Any) -> dict[str, FinishedJob]:
    """Run the tests of a folder to the last, and return how each ended, by its own name."""
    jobs = jobs_of(folder, *names, **{k: v for k, v in more.items() if k == "timeout"})
    may_fork = more.pop("forks", False)
    finished = run(jobs, lambda forks: launch(folder, forks=forks and may_fork, **more))
    assert sorted(one.job.case.id for one in finished) == sorted(job.case.id for job in jobs)
    return {one.job.case.name.partition("::")[2] or one.job.case.name: one for one in finished}
