"""The messages of a pytest session, and the collection of tests that they describe."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.engine.input_files import hash_inputs
from conformance.engine.workers.messages import read_message

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.workers.messages import JobEnd

FORKED: Final = "forked"
PROCESSES: Final = "processes"
"""The two ways in which the workers of a cell start."""


class Test(msgspec.Struct, frozen=True, kw_only=True):
    """A test as pytest names it.

    Attributes:
        name: Node id, with a number if several tests have the same.
        file: File of the test.
        line: First line of the test, 0 if unknown.
        bound: Widest scope of the fixtures that it uses, below that of a session.
    """

    __test__ = False  # keeps pytest from collecting it as a test class

    name: str
    file: str = ""
    line: int = 0
    bound: str = "module"


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """A module, class or folder that could not be collected, or was skipped as a whole.

    Attributes:
        node: Node id of the module, class or folder.
        broken: True if it failed, False if it was skipped.
        type: Type of the exception.
        message: Message of the exception.
        where: Last line of the file in the traceback, `file:line`.
        reason: Reason for the skip.
        text: Report as pytest prints it.
        frames: Exceptions with their frames, as `conformance.worker.tracebacks` describes them.
    """

    node: str
    broken: bool
    type: str = ""
    message: str = ""
    where: str = ""
    reason: str = ""
    text: str = ""
    frames: tuple[Any, ...] = ()

    def covers(self, name: str) -> bool:
        """Say whether a test belongs to the part that was not collected."""
        # The node id of the session is empty; pytest 8 added nodes of folders, `.` for the root.
        return self.node in {"", ".", name} or name.startswith((f"{self.node}::", f"{self.node}/"))

    def make_test(self, root: str) -> Test:
        """Return a test that represents the unknown tests of the node."""
        # A package that cannot be imported fails in its `__init__.py`.
        path = Path(root) / self.node.partition("::")[0]
        return Test(name=self.node, file=str(path / "__init__.py" if path.is_dir() else path))


class Collection(msgspec.Struct, frozen=True, kw_only=True):
    """The tests that were collected in a cell.

    Attributes:
        root: Folder that node ids start from.
        ini: Configuration file, empty for none.
        tests: The tests, in order.
        problems: Parts of the suite that were not collected.
        facts: Facts of the cell: `workers`, `facts`, `warnings`.
        inputs: Data files that collecting read, as `engine.input_files.hash_inputs` returns them.
        failure: Reason why nothing was collected, empty if something was.
        infra: Whether the failure is a problem of the host, not of the suite.
    """

    root: str = ""
    ini: str = ""
    tests: tuple[Test, ...] = ()
    problems: tuple[Problem, ...] = ()
    # Entries of the cache that older versions wrote have the field under this name.
    facts: dict[str, Any] = msgspec.field(default_factory=dict, name="told")
    inputs: dict[str, str] = {}
    failure: str = ""
    infra: bool = False


class CollectedTests(msgspec.Struct, frozen=True, kw_only=True):
    """The message at the end of collecting.

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
    """The message of a session that can run tests.

    Attributes:
        forks: Whether workers are forked from the session.
        why: Reason why none are forked.
        warnings: Warnings of collection, except those reported with tests.
    """

    forks: bool
    why: str = ""
    warnings: list[dict[str, Any]] = []


class TestReport(msgspec.Struct, frozen=True, kw_only=True):
    """The message at the end of a test.

    Attributes:
        test: Name of the test.
        outcome: `passed`, `failed`, `xfailed`, `skipped`, `left` if it ended the session,
            `unknown` if it was not run.
        phase: Phase of pytest that did not pass.
        seconds: Duration in seconds.
        type: Type of the exception.
        message: Message of the exception.
        where: Last line of the test's file in the traceback, `file:line`.
        frames: Exceptions with their frames, as `conformance.worker.tracebacks` describes them.
        falsifying: Examples of Hypothesis that the test fails with.
        reason: Reason for the skip, or for the expected failure.
        text: Traceback as pytest prints it.
        out: End of its standard output.
        err: End of its standard error.
        warnings: Warnings of the test, with their counts.
        read: Data files that the process has read.
    """

    __test__ = False  # keeps pytest from collecting it as a test class

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
        collected: Collected tests, None if it ended before.
        problems: Parts of the suite that could not be collected.
        ready: Message that it can run tests, None if it ended before.
        running: Last test that the suite's own loop began, empty if it ended.
        reports: Reports of the tests that the suite's own loop ran, by name.
        status: Exit status of pytest, None if it returned none.
        end: End of the process, or of its work; None while it runs.
        names: Names of the collected tests.
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
        """The facts of a cell: how its workers start, and versions of the tested package."""
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

    @property
    def collection(self) -> Collection:
        """The collection that these reports describe."""
        found = self.collected or CollectedTests()
        return Collection(
            root=found.root, ini=found.ini, tests=found.tests, problems=tuple(self.problems),
            facts=self.facts, inputs=hash_inputs(map(Path, found.read)),
        )  # fmt: skip

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
                # A set: each test of the run is looked up in it.
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
