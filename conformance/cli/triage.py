"""`conformance triage`: since when, by what, and how to see it, for each root cause of a run."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from conformance.app.context import load_context
from conformance.app.notes import print_note
from conformance.app.output_files import check_writable, write_file
from conformance.app.run_request import request_of
from conformance.app.triage import Means
from conformance.cells.cell_id import is_cell_id
from conformance.cli.console import open_console
from conformance.cli.options import json_option
from conformance.engine.causes import root_causes
from conformance.engine.evidence_file import add_evidence, forget_evidence, read_evidence
from conformance.engine.loading import load
from conformance.engine.rundir import RunDirectory, latest_run
from conformance.errors import ConformanceError
from conformance.files import readable_json
from conformance.model.evidence import Evidence
from conformance.model.outcome import ExitCode
from conformance.triage.evidence.choice import stands_for, why_not
from conformance.triage.evidence.finding import Finding
from conformance.triage.evidence.telling import evidence_lines
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console

    from conformance.app.context import ProjectContext
    from conformance.app.run_request import RunRequest
    from conformance.cells.cell import Cell
    from conformance.engine.causes import RootCause
    from conformance.model.case import Case


@click.command("triage")
@click.argument("run", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N",
    help="Look into the first N root causes, the largest first.",
)  # fmt: skip
@click.option(
    "--minutes", type=click.FloatRange(min=0), metavar="M",
    help="Begin with none after M minutes.",
)  # fmt: skip
@click.option(
    "--blame/--no-blame", default=True, show_default=True,
    help="Search for the package, where a release differs in several; makes environments.",
)  # fmt: skip
@click.option("--fresh", is_flag=True, help="Look also into what was looked into before.")
@json_option("what was found out")
def command(
    *,
    run: Path | None,
    limit: int | None,
    minutes: float | None,
    blame: bool,
    fresh: bool,
    json_file: Path | None,
) -> int:
    """Find out since when, and by what, a run is not as expected, for each of its root causes.

    RUN is the directory of a run, the newest one by default. Of each cause the job that needs
    least is tried where it was right: the release that a changed environment says it is, the last
    night, older releases. From there on the first bad release, night or environment is searched,
    as by `conformance bisect`, then the package, as by `conformance blame`, or the changed files of
    an environment. A file that shows it is written as by `conformance repro`. All of it goes to
    RUN/evidence.json and RUN/repro, cause by cause: what is there already is not searched again.

    \b
    conformance triage                        the newest run
    conformance triage reports/runs/NIGHT --limit 5 --minutes 30
    conformance triage --no-blame             no new environments
    conformance triage --fresh --json -       anew, for a script

    Faults of the host and what is flaky are not looked into. Exit status: 0 all that was looked
    into is found out, 1 something could not be, 2 usage, 4 the host stood in the way,
    70 internal error, 130 interrupted: the same command goes on.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if json_file is not None:
        check_writable("--json", json_file)
    directory = latest_run(context.project.root) if run is None else RunDirectory(run)
    console = open_console(json_file)
    triage = Triage(
        context=context, directory=directory, console=console, blame=blame, fresh=fresh,
        until=None if minutes is None else time.monotonic() + 60 * minutes, limit=limit,
    )  # fmt: skip
    try:
        triage.run()
    except KeyboardInterrupt:
        click.echo("conformance: interrupted; the same command goes on where it was", err=True)
        return ExitCode.INTERRUPTED
    if json_file is not None:
        data = {
            "run": directory.id, "jobs": triage.jobs, "evidence": triage.found,
            "left_out": triage.left_out,
        }  # fmt: skip
        text = readable_json(data)
        write_file("--json", json_file, text + b"\n")
    return triage.exit_code


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """A root cause that was not looked into.

    Attributes:
        cause: Its id.
        said: Its reason.
        why: Why not.
    """

    cause: str
    said: str
    why: str


@dataclass(slots=True, kw_only=True)
class Triage:
    """Root causes under way.

    Attributes:
        context: The project.
        directory: The run's.
        console: Is told of each cause.
        blame: Whether packages are searched for.
        fresh: Whether what was found out before is forgotten.
        until: When no other cause is begun with, by the monotonic clock.
        limit: How many causes are looked into.
        found: What was found out, in the order of the causes.
        left_out: What was not looked into.
        jobs: How many jobs each cause has, by its id.
    """

    context: ProjectContext
    directory: RunDirectory
    console: Console
    blame: bool
    fresh: bool
    until: float | None
    limit: int | None
    found: list[Evidence] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    jobs: dict[str, int] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """What it amounts to."""
        if any(one.unfinished for one in self.found):
            return ExitCode.INFRA
        done = all(one.confirmed for one in self.found)
        return ExitCode.OK if done else ExitCode.UNEXPECTED

    def run(self) -> None:
        """Look into the causes, one after the other; each is kept as it is found out.

        Raises:
            CorruptRunError: If the run cannot be read.
            InfrastructureError: If the disk refuses.
        """
        causes = root_causes(load(self.directory).records)
        if not causes:
            self.console.print("nothing is unexpected")
            return
        self.jobs = {cause.id: len(cause.records) for cause in causes}
        if self.fresh:
            forget_evidence(self.directory)
        known = read_evidence(self.directory)
        of = {one.id: known[one.id] for one in causes if one.id in known}
        request = request_of(self.directory)
        cases = {case.id: case for case in self.context.cases(request.select)}
        cells = self._cells(causes, request)
        for number, cause in enumerate(causes, 1):
            self._head(cause, number)
            if cause.id in of and not of[cause.id].unfinished:
                self._take(of[cause.id])
                continue
            if why := why_not(cause) or self._spent():
                self.left_out.append(LeftOut(cause=cause.id, said=cause.reason, why=why))
                self.console.print(f"  not looked into: {why}")
                continue
            of[cause.id] = self._found(cause, cells, cases, request)
            add_evidence(self.directory, of[cause.id], self.jobs, print_note)
            self._take(of[cause.id])

    def _cells(self, causes: Iterable[RootCause], request: RunRequest) -> Mapping[str, Cell]:
        """Return the cells of some causes, by id, without those that are not there any more."""
        wanted = dict.fromkeys(record.cell for cause in causes for record in cause.records)
        found = {}
        for name in filter(is_cell_id, wanted):
            try:
                found[name] = self.context.cell(name)
            except ConformanceError:
                continue
        if found.keys() != wanted.keys():  # an environment is known by its path alone
            for text in request.cell:
                try:
                    found |= {cell.id: cell for cell in self.context.cells(None, [text])[0]}
                except ConformanceError:
                    continue
        return found

    def _found(
        self, cause: RootCause, cells: Mapping[str, Cell], cases: Mapping[str, Case],
        request: RunRequest,
    ) -> Evidence:  # fmt: skip
        """Find out about a cause; what goes wrong is told of it, and ends no other."""
        first = cause.records[0]
        nothing = Evidence(cause=cause.id, case=first.case, cell=first.cell)
        means = Means(
            self.context, self.directory, request.wanted, self.fresh,
            partial(self._say, "    "),
        )  # fmt: skip
        try:
            record, case, cell = stands_for(cause, cells, cases)
            return Finding(means, cause.id, record, case, cell, self.blame).evidence()
        except ConformanceError as error:
            return msgspec.structs.replace(nothing, untold=(str(error),))
        except Exception as error:  # noqa: BLE001 - a fault of ours in one cause ends no other
            said = f"{type(error).__name__}: {error}; please report"
            return msgspec.structs.replace(nothing, untold=(said,), unfinished=True)

    def _spent(self) -> str:
        """Return why no other cause is begun with, empty if one is."""
        if self.until is not None and time.monotonic() >= self.until:
            return "no time is left; the same command goes on"
        if self.limit is not None and len(self.found) >= self.limit:
            return f"{self.limit} were looked into; the same command goes on with a higher --limit"
        return ""

    def _head(self, cause: RootCause, number: int) -> None:
        jobs = plural(len(cause.records), "job")
        first = cause.reason.strip().partition("\n")[0][:200]
        self.console.print(f"{number}. {cause.id}, {jobs}: {first}")

    def _take(self, found: Evidence) -> None:
        self.found.append(found)
        for line in evidence_lines(found):
            self._say("  ", line)

    def _say(self, indent: str, line: str) -> None:
        self.console.print(f"{indent}{line}")
