"""`conformance repro` of a script: the script itself, with a header that pins its packages."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from conformance.app.bisect import Asked, Subject, searched
from conformance.app.context import TIMEOUT
from conformance.app.output_files import write_file
from conformance.app.session import Session
from conformance.cells.interpreters import find_interpreter
from conformance.engine.blobs import BlobStore
from conformance.errors import NothingSelectedError, UsageError
from conformance.files import readable_json
from conformance.report.script_issue import Origin, script_issue
from conformance.scratch import temporary_folder
from conformance.triage.bisect.telling import answer_lines
from conformance.triage.programs.outcomes import outcome_of
from conformance.triage.programs.running import ProgramRunner
from conformance.triage.programs.single_file import refuse_other_files
from conformance.triage.repro.check import SLOWER, NotReproducedError, run_with_uv
from conformance.triage.repro.header import of_nightlies
from conformance.triage.repro.script_file import ScriptRun, same_ending, script_file

if TYPE_CHECKING:
    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.triage.programs.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRepro:
    """Options of `conformance repro` for a script.

    Attributes:
        script: The script.
        cell: Where it is run.
        out: File to write, None for a name of its own.
        issue: Whether an issue is printed.
        good: Where it was right, None if that is not to be searched for.
        wanted: Requirements beside the packages of the cell.
        check: Whether the file is run alone.
        json_file: Where data go.
    """

    script: Target
    cell: Cell
    out: Path | None
    issue: bool
    good: str | None
    wanted: tuple[str, ...]
    check: bool
    json_file: Path | None


def repro_script(context: ProjectContext, asked: ScriptRepro) -> int:
    """Write the file of a script, and what is asked in addition to it.

    Raises:
        UsageError: If the script reads files of its own, which one file cannot have.
        NotReproducedError: If the file does not end alone as the script did.
        InfrastructureError: If the cell cannot be had.
    """
    cell = asked.cell
    if cell.interpreter is not None or cell.place.processes > 1 or cell.place.compile_only:
        raise UsageError(f"{cell.id}: expected a release on cpu for a script")
    run = _run(context, asked)
    stem = Path(run.name).stem
    file = asked.out or Path(f"repro_{stem}_{cell.release.replace('.', '_')}.py")
    name = file.name if str(file) != "-" else f"repro_{stem}.py"
    text = script_file(run, name)
    write_file("--out", file, text.encode())
    if asked.check:
        _check(run, text, name, context)
    command = f"uv run {quote(str(file))}"
    if asked.issue:
        click.echo(script_issue(run, text, _origin(context, asked)), nl=False)
    if asked.json_file is not None:
        told = {"file": str(file), "cell": cell.id, "command": command, "checked": asked.check}
        write_file("--json", asked.json_file, readable_json(told))
    if str(file) != "-":
        click.echo(f"wrote {file}; run it with: {command}", err=True)
    return 0


def _run(context: ProjectContext, asked: ScriptRepro) -> ScriptRun:
    """Run the script in its cell."""
    session = Session(context=context)
    preparation = session.prepare([asked.cell])
    for left_out in preparation.exclusions:
        raise NothingSelectedError(f"{asked.cell.id}: {left_out.reason}")
    (planned,) = preparation.cells
    with temporary_folder("repro") as folder:
        blobs = BlobStore(folder / "blobs")
        runner = ProgramRunner(
            target=asked.script, locks=preparation.locks, cache=context.cache, outer=os.environ,
            blobs=blobs, timeout=TIMEOUT, wanted=session.requirements(asked.wanted),
            preferred=asked.script.preferred,
        )  # fmt: skip
        record = runner.run(planned)
        refuse_other_files(record, blobs, asked.script)
        return ScriptRun(
            name=Path(asked.script.text).name, source=asked.script.source, planned=planned,
            versions=runner.versions(planned), outcome=record.outcome, error=record.error,
            stdout=blobs.get(record.artifacts["stdout"]).decode("utf-8", "replace"),
            variables=asked.script.variables,
        )  # fmt: skip


def _check(run: ScriptRun, text: str, name: str, context: ProjectContext) -> None:
    """Run the file where nothing else is.

    Raises:
        NotReproducedError: If it does not end as the script did.
    """
    with temporary_folder("repro") as folder:
        file = folder / name
        file.write_text(text, encoding="utf-8")
        python = find_interpreter(run.planned.cell.python)
        index = context.settings.nightly_index if of_nightlies(run.planned.versions) else ""
        ended = run_with_uv(file, python, index, SLOWER * TIMEOUT)
    outcome, error = outcome_of(ended, None, SLOWER * TIMEOUT, set())
    if not same_ending(run, outcome, error):
        told = outcome if error is None else error.signature
        raise NotReproducedError(f"{name}: ends alone with {told}, expected {run.ending}")


def _origin(context: ProjectContext, asked: ScriptRepro) -> Origin | None:
    """Search for the release from which on the script does what it does."""
    if asked.good is None:
        return None
    question = Asked(
        good=asked.good, bad=asked.cell.release, platform=f"cpu{asked.cell.devices}",
        wanted=asked.wanted,
    )  # fmt: skip
    found = searched(
        context, Subject(program=asked.script), question,
        lambda line: click.echo(line, err=True), scan=True,
    )  # fmt: skip
    answer = found.answer
    return Origin(
        last_good=answer.labels[answer.last_good],
        first_bad=answer.labels[answer.first_bad],
        good=answer.said(answer.last_good),
        history="\n".join(answer_lines(answer, question.find, found.axis)),
    )
