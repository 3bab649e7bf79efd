"""The lookup of a target by what the user typed: a case, a test, a script, or a command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.app.notes import print_note
from conformance.app.report_input import STDIN, read_report
from conformance.app.suite_target import names_a_test, suite_target
from conformance.cells.cell import is_cell_id
from conformance.cells.selectors import split_platform
from conformance.suites.catalogue.named import NODE
from conformance.triage.programs.pasted_report import is_report, script_of_report
from conformance.triage.programs.program import ProgramKind, ProgramTarget, program_named

if TYPE_CHECKING:
    from conformance.app.bisect import BisectOptions
    from conformance.app.context import ProjectContext
    from conformance.app.suite_target import InSuite
    from conformance.app.target import Target


def target_named(
    context: ProjectContext, target: str, asked: BisectOptions, suite: InSuite, *, is_command: bool
) -> Target:
    """Return what a target names.

    Args:
        context: The project.
        target: What is named.
        asked: What is asked of it: what a test prints, holds or compiles is told of a whole
            process, so it is a program then.
        suite: What is asked of the suite, where it is a test.
        is_command: Whether it is a command line for sure.

    Raises:
        UsageError: If it names nothing.
        InfrastructureError: If a named suite cannot be fetched.
    """
    if not is_command and NODE in target and (calls := context.snapshots(target)):
        return calls[0]
    if not is_command and names_a_test(target, asked.when, asked.fact):
        return suite_target(context, target, suite, timeout=asked.timeout, wanted=asked.wanted)
    program = None if is_command else script_named(context, target)
    program = program or program_named(target, command=is_command)
    return program or context.case(target)


def script_named(context: ProjectContext, target: str) -> ProgramTarget | None:
    """Return the script that a target names, None for anything else.

    Args:
        context: The project.
        target: A script, or a report that holds one; `-` for one on standard input.

    Raises:
        UsageError: If a report holds no Python.
    """
    if target == STDIN or is_report(Path(target)):
        return _reported(context, target)
    if target.endswith(".py") and Path(target).is_file():
        return ProgramTarget(kind=ProgramKind.SCRIPT, text=target)
    return None


def on_one_cpu(selector: str) -> str:
    """Return a selector that names one CPU where it names no platform.

    Args:
        selector: A selector of one cell.
    """
    named = is_cell_id(selector) or split_platform(selector)[1]
    return selector if named else f"{selector}@cpu1"


def _reported(context: ProjectContext, target: str) -> ProgramTarget:
    """Return the script that a report holds, written where it can be run."""
    text, called = read_report(target)
    folder = context.project.root / "reports" / "pasted"
    return script_of_report(text, Path(called).name, folder, print_note)
