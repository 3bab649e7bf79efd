"""A test of a suite as the target of a search, collected and run like `conformance suite run`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.app.suites.cells import (
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
    from conformance.engine.workers.preparation import Preparation
    from conformance.model.case import Case
    from conformance.suites.suite import Examples, Suite

PROCESS_PREDICATES: Final = frozenset({"facts", "output", "memory"})
"""Predicates of `--when` about a whole process, not about one test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteOptions:
    """Options of a suite, for commands that accept one.

    Attributes:
        path: The user's own checkout of a named suite, None for the checkout in the cache.
        examples: Options of Hypothesis.
        standard: The version of its standard by which a named suite tests releases.
    """

    path: Path | None
    examples: Examples
    standard: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteTest:
    """A test of a suite as a target.

    Attributes:
        text: The node id that names the test.
        context: The project.
        suite: The suite, narrowed to this test.
        wanted: Requirements in addition to the packages of the cells.
    """

    text: str
    context: ProjectContext
    suite: Suite
    wanted: tuple[str, ...]

    def prepare(self, cells: Iterable[Cell]) -> Preparation:
        """Look up the locks and interpreters of cells, each with pytest."""
        return prepare_suite(self.context, cells, self.wanted)

    def collect(
        self, ends: Iterable[PlannedCell], locks: Mapping[str, Lock], *, slots: int
    ) -> tuple[Case, Executor]:
        """Return the test and its executor.

        Args:
            ends: Cells in which the test is collected.
            locks: Lock of each cell, by cell id; may grow.
            slots: Sessions at the same time.

        Raises:
            UsageError: If the node id is more than one test, or cannot be collected.
            NothingSelectedError: If it is no test.
            InfrastructureError: If no cell can be provided.
        """
        inside = SuiteInCells(self.suite, self.context, locks, slots=slots)
        cases, executor = inside.collect(ends)
        if len(cases) == 1:
            return cases[0], executor
        # The collection started workers, which would outlive the error.
        executor.close()
        raise UsageError(
            f"{self.text}: {plural(len(cases), 'test')}, "
            f"{join_names([case.id for case in cases])}; expected one; "
            f"for several tests use: conformance upgrade FROM TO --suite {self.text}"
        )


def is_test_name(text: str, when: str | None = None, fact: str = "") -> bool:
    """Return whether a target is a test of a suite.

    Args:
        text: The target: a node id below a file, or below the name of a suite.
        when: The predicate of `--when`.
        fact: The fact of `--fact`.
    """
    head, sign, _ = text.partition(NODE)
    # A command line may contain `::`, but then has a space; a path with spaces is a file.
    is_node = bool(sign) and (len(head.split()) == 1 or Path(head).is_file())
    of_process = bool(fact) or when in PROCESS_PREDICATES
    # Output, memory and compilations belong to a process: such a test runs as a program.
    return is_node and not (of_process and head.endswith(".py"))


def make_suite_test(
    context: ProjectContext,
    text: str,
    options: SuiteOptions,
    *,
    timeout: float,
    wanted: Sequence[str],
) -> SuiteTest:
    """Return the test of a suite that a text names.

    Args:
        context: The project.
        text: Node id of the test: below a file, or below the name of a suite.
        options: Options of the suite.
        timeout: Seconds that the test may take.
        wanted: Requirements in addition to the packages of the cells.

    Raises:
        UsageError: If there is no such file or suite.
        InfrastructureError: If a named suite cannot be fetched.
    """
    suite = make_suite(
        [text], timeout=timeout, wanted=wanted, start=Path.cwd(), examples=options.examples,
        standard=options.standard, home=SuiteHome(context=context, path=options.path),
    )  # fmt: skip
    needs = resolve_suite_requirements(context, wanted, suite)
    return SuiteTest(text=text, context=context, suite=suite, wanted=needs)
