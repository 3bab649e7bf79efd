"""What a target names: a case, a test of a suite, a script, or a command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from conformance.cells.cell_id import is_cell_id
from conformance.cells.selectors import split_platform
from conformance.cli.options import print_note
from conformance.cli.report_input import STDIN, read_report
from conformance.cli.searching import Subject
from conformance.cli.suite_target import names_a_test, suite_target
from conformance.suites.catalogue.named import NODE
from conformance.triage.programs.pasted import is_report, script_of_report
from conformance.triage.programs.target import Program, Target, target_of

if TYPE_CHECKING:
    from conformance.cli.searching import Asked
    from conformance.cli.setting import Setting
    from conformance.cli.suite_target import InSuite


def subject_named(
    setting: Setting, target: str, asked: Asked, suite: InSuite, *, is_command: bool
) -> Subject:
    """Return what a target names.

    Args:
        setting: Surroundings.
        target: What is named.
        asked: What is asked of it: what a test prints, holds or compiles is told of a whole
            process, so it is a program then.
        suite: What is asked of the suite, where it is a test.
        is_command: Whether it is a command line for sure.

    Raises:
        UsageError: If it names nothing.
        InfrastructureError: If a named suite cannot be fetched.
    """
    if not is_command and NODE in target and (calls := setting.snapshots(target)):
        return Subject(case=calls[0])
    if not is_command and names_a_test(target, asked.when, asked.fact):
        test = suite_target(setting, target, suite, timeout=asked.timeout, wanted=asked.wanted)
        return Subject(test=test)
    program = None if is_command else script_named(setting, target)
    program = program or target_of(target, command=is_command)
    return Subject(program=program) if program else Subject(case=setting.case(target))


def script_named(setting: Setting, target: str) -> Target | None:
    """Return the script that a target names, None for anything else.

    Args:
        setting: Surroundings.
        target: A script, or a report that holds one; `-` for one on standard input.

    Raises:
        UsageError: If a report holds no Python.
    """
    if target == STDIN or is_report(Path(target)):
        return _reported(setting, target)
    if target.endswith(".py") and Path(target).is_file():
        return Target(kind=Program.SCRIPT, text=target)
    return None


def on_one_cpu(selector: str) -> str:
    """Return a selector that names one CPU where it names no platform.

    Args:
        selector: A selector of one cell.
    """
    named = is_cell_id(selector) or split_platform(selector)[1]
    return selector if named else f"{selector}@cpu1"


def _reported(setting: Setting, target: str) -> Target:
    """Return the script that a report holds, written where it can be run."""
    text, called = read_report(target)
    folder = setting.project.root / "reports" / "pasted"
    return script_of_report(text, Path(called).name, folder, print_note)
