"""A pytest session in a cell: the process that collects a suite and runs its tests."""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from conformance.engine.workers.client import WorkerDiedError, WorkerProcess
from conformance.engine.workers.messages import JobEnd, Masking, read_message
from conformance.errors import InfrastructureError
from conformance.suites.inside.session_server import LOST, SOON
from conformance.suites.running.cells import check_identity
from conformance.suites.running.collection import SessionInfo, TestReport
from conformance.suites.suite import MEMORY, PLUGIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.job import Job, PlannedCell
    from conformance.suites.running.cells import ProvidedCell
    from conformance.suites.running.collection import Collection
    from conformance.suites.suite import Examples, Suite

QUIET: Final = 600.0
"""Seconds without a test after which a session counts as hanging: collecting, or tearing down."""
LARGEST: Final = 64
"""MiB that a test may print in spite of pytest's capturing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLaunch:
    """The settings of a session.

    Attributes:
        python: Interpreter of the cell.
        environment: Environment variables.
        folder: Working directory.
        arguments: Arguments of pytest.
        timeout: Time limit of a test, in seconds.
        memory: Memory limit of the process, in MiB.
        files: Files to collect; None for the whole suite.
        examples: Settings of Hypothesis, None for those of the suite alone.
        facts: Facts to report about the tested package: `module:attribute` by name.
        forks: Whether workers may be forked from the session.
        seed_random: Whether `random` is seeded with the name of each test.
        data: Whether the data files that tests read are recorded.
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
        """The settings that the process inside the cell needs, as plain data."""
        examples = self.examples
        return {
            "folder": str(self.folder), "arguments": list(self.arguments),
            "timeout": self.timeout, "quiet": QUIET, "facts": dict(self.facts),
            "forks": self.forks, "data": self.data,
            "examples": examples and {**asdict(examples), "seed_random": self.seed_random},
        }  # fmt: skip


class PytestSession(WorkerProcess):
    """A process that collects a suite and runs its tests, itself or in workers that it forks.

    Args:
        launch: Settings of the session.

    Attributes:
        launch: Settings of the session.
        info: Reports before any test was requested.
        resources: Locks that are held until the session has ended.
    """

    def __init__(self, launch: SessionLaunch) -> None:
        super().__init__([launch.python, "-s", PLUGIN, "serve"], launch.environment)
        self.launch = launch
        self.info = SessionInfo(self.identity["versions"])
        self.resources = contextlib.ExitStack()

    def collect(self) -> None:
        """Collect, until it can run tests or has ended.

        Raises:
            InfrastructureError: If pytest cannot be imported.
        """
        info = self.info
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
        end = info.end or JobEnd()
        if not info.started and not end.ended:
            text = end.stderr.strip()[-2000:] or f"status {end.exit}"
            raise InfrastructureError(f"pytest does not start; its output: {text}")

    def covers(self, job: Job) -> bool:
        """Say whether it has collected the file of a test."""
        files = self.launch.files
        return files is None or str(job.case.file.absolute()) in files

    def run(self, test: str, following: str, share: str) -> tuple[TestReport | None, JobEnd]:
        """Run a test.

        Args:
            test: Name of the test.
            following: The next test of the same process, empty for none.
            share: Key of the worker that runs it, if workers are forked.

        Returns:
            The report, None if the test ended its process; and how the process ended, or that it
            became idle.
        """
        report = None
        try:
            for message in self._request({"test": test, "next": following, "share": share}):
                if "end" in message:
                    report = read_message(message["end"], TestReport)
                if message.get("kind") == "done":
                    return report, read_message(message, JobEnd)
        except WorkerDiedError:
            # With several tests in workers, any of them may be the cause.
            return report, JobEnd(ended=LOST if self.info.forks else "")
        except ValueError:
            return None, JobEnd(ended="garbled")
        raise AssertionError  # the last message is about the end

    def _request(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a request and yield the messages about it, with secrets masked."""
        limits = {
            "timeout": QUIET, "memory": self.launch.memory, "printed_mb": LARGEST,
            # Tests observe no values: their reports are bounded by `inside.reports`.
            "observation_mb": 0, "processes": 1,
        }  # fmt: skip
        masking = Masking(self._masker)
        patience = max(QUIET, self.launch.timeout)
        for frame in self.exchange({**limits, **request}, patience):
            yield masking.mask(frame)[0]

    # Twice the time that the session server waits: it must be able to end the session first.
    def close(self, patience: float = 2 * SOON) -> None:
        """End it, and everything that it started; if no test runs, it ends as pytest does."""
        super().close(patience)
        self.resources.close()


def make_pytest_arguments(collection: Collection) -> list[str]:
    """Return the arguments of pytest that give every session the same root and configuration.

    Args:
        collection: An earlier collection, empty if there is none.
    """
    known = ["--rootdir", collection.root] if collection.root else []
    known += ["-c", collection.ini] if collection.ini else []
    # Overrides -x and --maxfail in the configuration of a suite: all of its tests must run.
    return [*known, "--continue-on-collection-errors", "--maxfail=0"]


def start_session(
    suite: Suite, planned: PlannedCell, place: ProvidedCell, collection: Collection,
    files: Sequence[str] | None, *, forks: bool,
) -> PytestSession:  # fmt: skip
    """Start a session of a suite in a cell.

    Args:
        suite: Suite to collect.
        planned: Cell that the session runs in.
        place: The cell's environment.
        collection: An earlier collection, empty if there is none.
        files: Files to collect; None for the whole suite.
        forks: Whether to fork workers from the session, where that is safe.

    Raises:
        InfrastructureError: If it does not start, or the environment is not that of the cell.
    """
    session = PytestSession(SessionLaunch(
        python=place.python,
        environment=place.variables,
        folder=suite.folder,
        arguments=[
            *suite.arguments, *make_pytest_arguments(collection),
            *(suite.paths if files is None else files),
        ],
        timeout=suite.timeout,
        memory=MEMORY,
        files=None if files is None else frozenset(files),
        examples=suite.examples,
        facts=suite.definition.facts,
        forks=forks,
        seed_random=suite.definition.seed_random,
        # A pinned checkout is restored before each run: its files are those of its commit.
        data=not suite.is_in_cache,
    ))  # fmt: skip
    try:
        check_identity(planned, session.info.versions)
    except InfrastructureError:
        session.close()
        raise
    return session
