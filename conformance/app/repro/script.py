"""The file of `conformance repro` for a script: the script, with a header of pinned packages."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from conformance.app.context import TIMEOUT
from conformance.app.output_files import write_file
from conformance.app.repro.options import Reproduction, find_check_index, search_origin
from conformance.app.session import Session
from conformance.app.target import select_platform
from conformance.cells.interpreters import find_interpreter
from conformance.engine.cache.blobs import BlobStore
from conformance.errors import NothingSelectedError, UsageError
from conformance.report.upstream_issue import render_script_issue
from conformance.scratch import temporary_folder
from conformance.triage.programs.outcomes import classify_outcome
from conformance.triage.programs.program import refuse_other_files
from conformance.triage.programs.runner import ProgramRunner
from conformance.triage.repro.script_file import (
    ScriptRun,
    is_same_ending,
    make_script_run,
    render_script_file,
)
from conformance.triage.repro.verification import SLOWER, NotReproducedError, run_with_uv

if TYPE_CHECKING:
    from collections.abc import Callable

    from conformance.app.context import ProjectContext
    from conformance.app.repro.options import ReproOptions
    from conformance.cells.cell import Cell
    from conformance.triage.programs.program import ProgramTarget


def reproduce_script(
    context: ProjectContext,
    script: ProgramTarget,
    options: ReproOptions,
    say: Callable[[str], None],
) -> Reproduction:
    """Write the file of a script, and the text of an issue.

    Args:
        context: The project.
        script: The script.
        options: The options.
        say: Called with each step of the search for the first bad release, in a line.

    Raises:
        UsageError: If an option goes with a case, or the script reads other files, which a single
            file cannot contain.
        NotReproducedError: If the file alone does not end like the script.
        InfrastructureError: If the cell cannot be provided.
    """
    _refuse_case_options(options)
    cell = context.find_cell(select_platform(options.cells[0], script))
    # Only a release on CPU can be pinned in a header that uv resolves on any host.
    if cell.interpreter is not None or cell.place.processes > 1 or cell.place.compile_only:
        raise UsageError(f"{cell.id}: expected a release on cpu for a script")
    run = _run(context, script, cell, options.wanted)
    stem = Path(run.name).stem
    file = options.out or Path(f"repro_{stem}_{cell.release.replace('.', '_')}.py")
    name = file.name if str(file) != "-" else f"repro_{stem}.py"
    text = render_script_file(run, name)
    # Written before the check: the user can find out why a file does not reproduce.
    write_file("--out", file, text.encode())
    if options.check:
        _check(run, text, name, context)
    issue = ""
    if options.issue:
        origin = search_origin(context, script, cell, options, say)
        issue = render_script_issue(run, text, origin)
    command = f"uv run {quote(str(file))}"
    return Reproduction(
        file=file, cell=cell.id, command=command, checked=options.check, issue=issue
    )


def _refuse_case_options(options: ReproOptions) -> None:
    """Refuse options that apply only to a case."""
    if len(options.cells) > 1:
        number = len(options.cells)
        raise UsageError(f"got {number} cells, expected one for a script; --good compares")
    if options.run is not None:
        raise UsageError("--run: goes with a case, got a script")
    if options.good is not None and not options.issue:
        raise UsageError(f"--good {options.good}: goes with --issue")


def _run(
    context: ProjectContext, script: ProgramTarget, cell: Cell, wanted: tuple[str, ...]
) -> ScriptRun:
    """Run the script in its cell."""
    session = Session(context=context)
    planned, locks = session.prepare_cell(cell, refuse=NothingSelectedError)
    with temporary_folder("repro") as folder:
        blobs = BlobStore(folder / "blobs")
        runner = ProgramRunner(
            target=script, locks=locks, cache=context.cache, outer=os.environ,
            blobs=blobs, timeout=TIMEOUT, wanted=session.build_requirements(wanted),
            preferred=script.preferred,
        )  # fmt: skip
        record = runner.run(planned)
        # Known only after the run, which records the files that the script opened.
        refuse_other_files(record, blobs, script)
        return make_script_run(runner, planned, record)


def _check(run: ScriptRun, text: str, name: str, context: ProjectContext) -> None:
    """Run the file in an empty folder.

    Raises:
        NotReproducedError: If the file does not end like the script.
    """
    with temporary_folder("repro") as folder:
        file = folder / name
        file.write_text(text, encoding="utf-8")
        # By the Python of the cell: uv could choose another one that the header admits.
        python = find_interpreter(run.planned.cell.python)
        index = find_check_index(context, run.planned.versions)
        ended = run_with_uv(file, python, index, SLOWER * TIMEOUT)
    # Nothing of the harness runs in there, so no exception is noted: its traceback is parsed.
    outcome, error = classify_outcome(ended, None, SLOWER * TIMEOUT, set())
    if not is_same_ending(run, outcome, error):
        ending = outcome if error is None else error.signature
        raise NotReproducedError(f"{name}: ends alone with {ending}, expected {run.ending}")
