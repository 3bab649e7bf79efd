"""A test of a suite as the target of a search, collected and run like `conformance suite run`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.app.suites import (
    SuiteHome,
    SuiteInCells,
    prepare_suite,
    resolve_suite_requirements,
)
from conformance.errors import UsageError
from conformance.report.text import join_names
from conformance.suites.catalogue.request import NODE
from conformance.suites.suite import make_suite
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.cells.lock import Lock
    from conformance.engine.job import Executor, PlannedCell
    from conformance.engine.preparation import Preparation
    from conformance.model.case import Case
    from conformance.suites.suite import Examples, Suite

OF_PROCESSES: Final = frozenset({"facts", "output", "memory"})
"""What `--when` says that is asked of a whole process, not of one test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InSuite:
    """What is asked of a suite, beside its tests.

    Attributes:
        path: A checkout of the user's own of a named suite.
        examples: How Hypothesis looks for examples.
        standard: The version of its standard that a named suite holds releases against.
    """

    path: Path | None
    examples: Examples
    standard: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTest:
    """A test of a suite.

    Attributes:
        text: What names it.
        context: The project.
        suite: The suite, as far as it is asked for: this test.
        wanted: What cells have beside their own packages, as requirements.
    """

    text: str
    context: ProjectContext
    suite: Suite
    wanted: tuple[str, ...]

    def prepare(self, cells: Iterable[Cell]) -> Preparation:
        """Return what can be planned of some cells, each with pytest."""
        return prepare_suite(self.context, cells, self.wanted)

    def collect(
        self, ends: Iterable[PlannedCell], locks: Mapping[str, Lock], *, slots: int
    ) -> tuple[Case, Executor]:
        """Return the test, and what runs it.

        Args:
            ends: Where it is looked for.
            locks: Lock of each cell, by cell id; may grow.
            slots: Sessions at the same time.

        Raises:
            UsageError: If it is more than one test, or cannot be collected.
            NothingSelectedError: If it is none.
            InfrastructureError: If no cell can be provided.
        """
        inside = SuiteInCells(self.suite, self.context, locks, slots=slots)
        cases, executor = inside.collect(ends)
        if len(cases) == 1:
            return cases[0], executor
        executor.close()
        raise UsageError(
            f"{self.text}: {plural(len(cases), 'test')}, "
            f"{join_names([case.id for case in cases])}; expected one; "
            f"for several tests use: conformance upgrade FROM TO --suite {self.text}"
        )


def is_test_name(text: str, when: str | None = None, fact: str = "") -> bool:
    """Say whether a target is a test of a suite.

    Args:
        text: The target: a node id below a file, or below the name of a suite.
        when: What makes a point bad.
        fact: A fact that does.
    """
    head, sign, _ = text.partition(NODE)
    is_node = bool(sign) and (len(head.split()) == 1 or Path(head).is_file())
    of_process = bool(fact) or when in OF_PROCESSES
    # What a process prints, holds and compiles is known of a file's test that runs in one alone.
    return is_node and not (of_process and head.endswith(".py"))


def make_suite_test(
    context: ProjectContext, text: str, asked: InSuite, *, timeout: float, wanted: Sequence[str]
) -> SuiteTest:
    """Return the test of a suite that a text names.

    Args:
        context: The project.
        text: Its node id: below a file, or below the name of a suite.
        asked: What is asked of the suite.
        timeout: Seconds that it may take.
        wanted: What cells are to have beside their own packages.

    Raises:
        UsageError: If there is no such file or suite.
        InfrastructureError: If a named suite cannot be fetched.
    """
    suite = make_suite(
        [text], timeout=timeout, wanted=wanted, start=Path.cwd(), examples=asked.examples,
        standard=asked.standard, home=SuiteHome(context=context, path=asked.path),
    )  # fmt: skip
    needs = resolve_suite_requirements(context, wanted, suite)
    return SuiteTest(text=text, context=context, suite=suite, wanted=needs)
