"""A session of pytest in a cell, and the process that serves it."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.client import WorkerDiedError, WorkerProcess
from conformance.engine.messages import JobEnd, Masking, read_message
from conformance.errors import InfrastructureError
from conformance.suites.inside.session_server import LOST, SOON
from conformance.suites.running.cells import check_identity
from conformance.suites.running.session_info import SessionInfo, TestReport
from conformance.suites.suite import MEMORY, PLUGIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.job import Job, PlannedCell
    from conformance.suites.running.cells import ProvidedCell
    from conformance.suites.running.collection import Collection
    from conformance.suites.suite import Examples, Suite

QUIET: Final = 600.0
"""Seconds without a test after which a session is held to hang: collecting, or tidying up."""
LARGEST: Final = 64
"""MiB that a test may print past pytest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What a session collects, and where.

    Attributes:
        python: Interpreter of the cell.
        environment: Environment variables.
        folder: Working directory.
        arguments: Arguments of pytest.
        timeout: Seconds that one test may take.
        memory: MiB that the process may hold.
        files: Files that it collects; None for the whole suite.
        examples: How Hypothesis looks for examples, None where the suite alone says so.
        facts: Facts to report about the tested package: `module:attribute` by name.
        forks: Whether it may fork workers.
        seed_random: Whether `random` begins each test with its name.
        data: Whether the data files that tests read are noted.
    """

    python: Path
    environment: Mapping[str, str]
    folder: Path
    arguments: Sequence[str]
    timeout: float
    memory: int
    files: frozenset[str] | None = None
    examples: Examples | None = None
    facts: Mapping[str, str] = field(default_factory=dict)
    forks: bool = False
    seed_random: bool = False
    data: bool = True

    @property
    def order(self) -> dict[str, Any]:
        """The part that the process inside the cell needs, as plain data."""
        how = self.examples
        return {
            "folder": str(self.folder),
            "arguments": list(self.arguments),
            "timeout": self.timeout,
            "quiet": QUIET,
            "facts": dict(self.facts),
            "forks": self.forks,
            "data": self.data,
            "examples": how and {**asdict(how), "seed_random": self.seed_random},
        }


class PytestSession(WorkerProcess):
    """A process that collects a suite and runs its tests, itself or in workers that it forks.

    Args:
        launch: What it collects.

    Attributes:
        launch: What it collects.
        info: What it reported before any test was requested.
        held: Resources that are held until it has ended.
    """

    def __init__(self, launch: Launch) -> None:
        super().__init__([launch.python, "-s", PLUGIN, "serve"], launch.environment)
        self.launch = launch
        self.info = SessionInfo(self.identity["versions"])
        self.held = contextlib.ExitStack()

    def collect(self) -> None:
        """Collect, up to where it can run tests or has ended; a second call does nothing.

        Raises:
            InfrastructureError: If pytest cannot be imported.
        """
        info = self.info
        if info.end is not None or info.forks:
            return
        try:
            for message in self._request({"session": self.launch.order, "share": "session"}):
                info.take(message)
                if info.forks:  # the request lasts as long as it forks workers
                    return
                if message.get("kind") == "done":
                    info.end = read_message(message, JobEnd)
        except WorkerDiedError:
            info.end = JobEnd()
        except ValueError:
            info.end = JobEnd(ended="garbled")
        assert info.end is not None  # noqa: S101 - the last message is about the end
        if not info.started and not info.end.ended:
            text = info.end.stderr.strip()[-2000:] or f"status {info.end.exit}"
            raise InfrastructureError(f"pytest does not start; it said: {text}")

    def covers(self, job: Job) -> bool:
        """Say whether it has collected the file of a test."""
        files = self.launch.files
        return files is None or str(job.case.file.absolute()) in files

    def run(self, test: str, following: str, share: str) -> tuple[TestReport | None, JobEnd]:
        """Run a test.

        Args:
            test: Its name.
            following: The next test that the same process is to run, empty for none.
            share: Key of the process that is to run it, where workers are forked.

        Returns:
            How it ended, None if it took its process with it; and how the process did, or that it
            fell idle.
        """
        report = None
        try:
            for message in self._request({"test": test, "next": following, "share": share}):
                if "end" in message:
                    report = read_message(message["end"], TestReport)
                if message.get("kind") == "done":
                    return report, read_message(message, JobEnd)
        except WorkerDiedError:
            # Of several tests in workers it is not known which one is at fault.
            return report, JobEnd(ended=LOST if self.info.forks else "")
        except ValueError:
            return None, JobEnd(ended="garbled")
        raise AssertionError  # the last message is about the end

    def _request(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a request and yield the messages about it, with secrets masked."""
        limits = {
            "timeout": QUIET, "memory": self.launch.memory, "printed_mb": LARGEST,
            "observation_mb": 0, "processes": 1,
        }  # fmt: skip
        masking = Masking(self._masker)
        patience = max(QUIET, self.launch.timeout)
        for frame in self.exchange({**limits, **request}, patience):
            yield masking.frame(frame)[0]

    def close(self, patience: float = 2 * SOON) -> None:
        """End it, and all that it started; one that runs no test ends as pytest does."""
        super().close(patience)
        self.held.close()


def pytest_arguments(collection: Collection) -> list[str]:
    """Return arguments of pytest with which every session is about the same project.

    Args:
        collection: What was collected, empty where that is not known yet.
    """
    known = ["--rootdir", collection.root] if collection.root else []
    known += ["-c", collection.ini] if collection.ini else []
    # One test that fails is no reason to know nothing of the others.
    return [*known, "--continue-on-collection-errors", "--maxfail=0"]


def start_session(
    suite: Suite, planned: PlannedCell, place: ProvidedCell, collection: Collection,
    files: Sequence[str] | None = None, *, forks: bool = True,
) -> PytestSession:  # fmt: skip
    """Start a session of a suite in a cell.

    Args:
        suite: The suite.
        planned: The cell.
        place: The cell's environment.
        collection: What was collected before, empty where that is not known yet.
        files: The files it collects; None for the whole suite.
        forks: Whether it forks workers, where that is safe.

    Raises:
        InfrastructureError: If it does not start, or is not of the cell.
    """
    paths = suite.paths if files is None else files
    session = PytestSession(Launch(
        python=place.python,
        environment=place.variables,
        folder=suite.folder,
        arguments=[*suite.arguments, *pytest_arguments(collection), *paths],
        timeout=suite.timeout,
        memory=MEMORY,
        files=None if files is None else frozenset(files),
        examples=suite.examples,
        facts=suite.facts,
        forks=forks,
        seed_random=suite.seed_random,
        # A pinned checkout is restored before each run: its files are those of its commit.
        data=not suite.is_in_cache,
    ))  # fmt: skip
    try:
        check_identity(planned, session.info.versions)
    except InfrastructureError:
        session.close()
        raise
    return session
