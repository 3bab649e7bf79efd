"""Targets: a case, a program or a test of a suite, found by the text that names it."""

from __future__ import annotations

import hashlib
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from conformance.app.output_files import print_note
from conformance.app.suites.target import SuiteTest, is_test_name, make_suite_test
from conformance.cells.cell import is_cell_id
from conformance.cells.selectors import split_platform
from conformance.errors import UsageError
from conformance.files import describe_os_error
from conformance.judge.tolerance import Tolerance
from conformance.model.case import Case
from conformance.suites.catalogue.request import NODE
from conformance.triage.programs.pasted_report import extract_script, is_report
from conformance.triage.programs.program import ProgramKind, ProgramTarget, find_program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from conformance.app.context import ProjectContext
    from conformance.app.search.options import SearchOptions
    from conformance.app.session import Session
    from conformance.app.suites.target import SuiteOptions
    from conformance.cells.cell import Cell
    from conformance.engine.workers.preparation import Preparation

    Prepare = Callable[[Iterable[Cell]], Preparation]

LARGEST: Final = 1 << 20
"""Bytes of a script; a larger file is no script, and a pipe may never end."""
STDIN: Final = "-"
"""The name of standard input."""


def read_report(script: str) -> tuple[str, str]:
    """Return the text of a script or a report, and its name in messages.

    Args:
        script: File of the script, or `-` for standard input.

    Raises:
        UsageError: If the file cannot be read, or is no text.
    """
    if script == STDIN:
        return _decode(sys.stdin.buffer.read(LARGEST + 1), "standard input")
    try:
        with Path(script).open("rb") as file:
            # A byte more than allowed shows that the file is too large, without reading all of it.
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(
            f"{script}: cannot be read: {describe_os_error(error)}; expected a script"
        ) from None
    return _decode(data, script)


def _decode(data: bytes, name: str) -> tuple[str, str]:
    if len(data) > LARGEST:
        raise UsageError(f"{name}: is larger than {LARGEST >> 20} MiB, expected a script")
    try:
        # Editors on Windows begin a file with a byte order mark, and end lines with CR LF.
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{name}: is no UTF-8 text, expected a Python script") from None
    # NUL is valid UTF-8, but no Python source.
    if "\0" in text:
        raise UsageError(f"{name}: is no text, expected a Python script")
    return text.replace("\r\n", "\n"), name


Target: TypeAlias = Case | ProgramTarget | SuiteTest


def get_name(target: Target) -> str:
    """Return the id of a case, else the text that named the target."""
    return target.id if isinstance(target, Case) else target.text


def get_tolerance(target: Target) -> Tolerance:
    """Return how far values of a target may differ: what a case states, else the default."""
    return Tolerance.of(target) if isinstance(target, Case) else Tolerance()


def make_preparer(session: Session, target: Target, wanted: tuple[str, ...]) -> Prepare:
    """Return a function that looks up the locks of cells for a target.

    Args:
        session: Prepares cells.
        target: The target.
        wanted: Requirements of a case in addition to the packages of its cells. Those of a program
            are layered when it runs, and a test of a suite has its own.
    """
    if isinstance(target, SuiteTest):
        return target.prepare
    needed = wanted if isinstance(target, Case) else ()
    return partial(session.prepare, wanted=needed)


def choose_platform(target: Target, options: SearchOptions) -> str:
    """Return the platform on which a target is tried, empty for its default.

    Args:
        target: The target. A case declares its devices.
        options: The options of the search, which may name a platform.
    """
    return options.platform or (target.platform if isinstance(target, ProgramTarget) else "")


def make_log_name(target: Target, question: str) -> str:
    """Return the name of the folder in which searches about a target are logged.

    Args:
        target: The target.
        question: The words that name the question.
    """
    name = get_name(target)
    # The working directory counts: a relative path, or a command, means another target elsewhere.
    digest = hashlib.sha256(f"{name}\0{question}\0{Path.cwd()}".encode()).hexdigest()[:12]
    # The readable part is for people; the digest alone distinguishes two logs.
    word = "".join(sign if sign.isalnum() else "-" for sign in Path(name).name)[:40]
    return f"{word.strip('-')}-{digest}"


def find_target(
    context: ProjectContext, target: str, options: SearchOptions, suite: SuiteOptions
) -> Target:
    """Find the case, test, script or command that a text names.

    Args:
        context: The project.
        target: The text, as given on the command line.
        options: Options of the search. If they name output, memory or compilations, a test is run
            as a whole program, because these are properties of a process.
        suite: Options of the suite, if the target is a test.

    Raises:
        UsageError: If the text names nothing.
        InfrastructureError: If a named suite cannot be fetched.
    """
    if not options.is_command:
        # A call of a script has the form of a node id, so it is looked for before tests.
        if NODE in target and (calls := context.find_snapshots(target)):
            return calls[0]
        if is_test_name(target, options.when, options.fact):
            timeout, wanted = options.timeout, options.wanted
            return make_suite_test(context, target, suite, timeout=timeout, wanted=wanted)
        if (script := find_script(context, target)) is not None:
            return script
    # Case ids come last: a script or a command that exists is never the name of a case.
    return find_program(target, command=options.is_command) or context.find_case(target)


def find_script(context: ProjectContext, target: str) -> ProgramTarget | None:
    """Return the script that a target names, None for anything else.

    Args:
        context: The project.
        target: A script, or a report that holds one; `-` for one on standard input.

    Raises:
        UsageError: If a report holds no Python.
    """
    if target == STDIN or is_report(Path(target)):
        return _write_reported_script(context, target)
    if target.endswith(".py") and Path(target).is_file():
        return ProgramTarget(kind=ProgramKind.SCRIPT, text=target)
    return None


def select_platform(selector: str, program: ProgramTarget) -> str:
    """Return a selector with the platform of a program, unless it names a platform.

    Args:
        selector: A selector of one cell.
        program: The program.
    """
    named = is_cell_id(selector) or split_platform(selector)[1]
    return selector if named else f"{selector}@{program.platform}"


def _write_reported_script(context: ProjectContext, target: str) -> ProgramTarget:
    """Return the script in a report, written to a file that can be run."""
    text, called = read_report(target)
    # In the project, not in /tmp: the log of a search finds the same script again later.
    folder = context.project.root / "reports" / "pasted"
    return extract_script(text, Path(called).name, folder, print_note)
