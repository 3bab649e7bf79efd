"""The messages of a session of pytest, and what it has reported of itself and of its suite."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.engine.input_files import hash_inputs
from conformance.engine.messages import read_message
from conformance.suites.running.collection import Collection, Problem, Test

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.messages import JobEnd

FORKED: Final = "forked"
PROCESSES: Final = "processes"
"""How the workers of a cell came to be."""


class CollectedTests(msgspec.Struct, frozen=True, kw_only=True):
    """The end of collecting.

    Attributes:
        root: Folder that node ids start from.
        ini: Configuration file, empty for none.
        tests: The tests, in order.
        facts: Facts about the tested package, by name.
        read: Data files that collecting read.
    """

    root: str = ""
    ini: str = ""
    tests: tuple[Test, ...] = ()
    facts: dict[str, str] = {}
    read: tuple[str, ...] = ()


class SessionReady(msgspec.Struct, frozen=True, kw_only=True):
    """A session can run tests.

    Attributes:
        forks: Whether it forks workers.
        why: Why it does not.
        warnings: Warnings of collection, except those reported with tests.
    """

    forks: bool
    why: str = ""
    warnings: list[dict[str, Any]] = []


class TestReport(msgspec.Struct, frozen=True, kw_only=True):
    """How a test ended.

    Attributes:
        test: Its name.
        outcome: `passed`, `failed`, `xfailed`, `skipped`, `left` if it ended the session,
            `unknown` if it was not run.
        phase: Phase of pytest that did not pass.
        seconds: Seconds that it took.
        type: Type of the exception.
        message: Its message.
        where: Last line of the test's file that took part, `file:line`.
        frames: Exceptions with their frames, as `conformance.worker.tracebacks` describes them.
        falsifying: Examples of Hypothesis that it fails with.
        reason: Why it is skipped, or expected to fail.
        text: Its traceback as pytest prints it.
        out: The last of what it printed.
        err: The last of what it printed on standard error.
        warnings: Its warnings.
        read: Data files that the process has read.
    """

    __test__ = False  # no class of tests to pytest

    test: str = ""
    outcome: str = ""
    phase: str = ""
    seconds: float = 0.0
    type: str = ""
    message: str = ""
    where: str = ""
    frames: tuple[Any, ...] = ()
    falsifying: str = ""
    reason: str = ""
    text: str = ""
    out: str = ""
    err: str = ""
    warnings: list[dict[str, Any]] = []
    read: tuple[str, ...] = ()


@dataclass(slots=True)
class SessionInfo:
    """The reports of a session before any test was requested.

    Attributes:
        versions: Version of every package of the cell.
        started: Whether pytest could be imported.
        collected: The tests, None if it did not get so far.
        problems: Parts of the suite that could not be collected.
        ready: Whether and how it runs tests, None if it does not.
        running: A test that a loop of the suite's own was running last, empty for none.
        reports: How tests ended that a loop of the suite's own ran, by name.
        status: Status that pytest returned, None if it did not.
        end: How the process ended, or became idle; None while it runs.
        names: The names of the tests.
    """

    versions: Mapping[str, str]
    started: bool = False
    collected: CollectedTests | None = None
    problems: list[Problem] = field(default_factory=list)
    ready: SessionReady | None = None
    running: str = ""
    reports: dict[str, TestReport] = field(default_factory=dict)
    status: int | None = None
    end: JobEnd | None = None
    names: frozenset[str] = frozenset()

    @property
    def forks(self) -> bool:
        """Whether it forks workers."""
        return self.ready is not None and self.ready.forks

    @property
    def facts(self) -> dict[str, Any]:
        """The facts of a cell: how its workers came to be, and what it tests."""
        facts: dict[str, Any] = {}
        if self.collected and self.collected.facts:
            facts["facts"] = self.collected.facts
        if self.ready is None:
            return facts
        if self.ready.warnings:
            facts["warnings"] = self.ready.warnings
        if self.ready.forks:
            return {**facts, "workers": FORKED}
        return {**facts, "workers": PROCESSES, "not forked": self.ready.why}

    def take(self, message: Mapping[str, Any]) -> None:
        """Take a message.

        Args:
            message: The header of a frame.

        Raises:
            ValueError: If it is malformed: a test can write into the channel, too.
        """
        match message:
            case {"started": _}:
                self.started = True
            case {"problem": problem}:
                self.problems.append(read_message(problem, Problem))
            case {"collected": collected}:
                self.collected = read_message(collected, CollectedTests)
                self.names = frozenset(test.name for test in self.collected.tests)
            case {"ready": ready}:
                self.ready = read_message(ready, SessionReady)
            case {"begin": test}:
                self.running = str(test)
            case {"end": end}:
                report = read_message(end, TestReport)
                self.reports[report.test], self.running = report, ""
            case {"over": status}:
                self.status = read_message(status, int)
            case _:
                pass


def collection_of(info: SessionInfo) -> Collection:
    """Return the collection of a session.

    Args:
        info: Its reports.
    """
    found = info.collected or CollectedTests()
    return Collection(
        root=found.root, ini=found.ini, tests=found.tests, problems=tuple(info.problems),
        told=info.facts, inputs=hash_inputs(map(Path, found.read)),
    )  # fmt: skip
