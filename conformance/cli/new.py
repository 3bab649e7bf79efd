"""`conformance new`: a script that somebody pasted, as a case."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from conformance.app.context import load_context
from conformance.app.notes import print_note
from conformance.app.output_files import check_writable, write_file
from conformance.app.report_input import STDIN, read_report
from conformance.app.session import Session
from conformance.cells.selectors import resolve_selector, select_cells
from conformance.cli.console import open_console
from conformance.cli.options import jobs_option, json_option
from conformance.cli.words import CELLS, FAMILIES
from conformance.engine.blobs import BlobStore
from conformance.errors import UsageError
from conformance.files import readable_json, write_atomically
from conformance.locking import locked
from conformance.model.outcome import ExitCode
from conformance.scratch import temporary_folder
from conformance.triage.bisect.prober import ProgramProber
from conformance.triage.new.bench import Bench
from conformance.triage.new.file import Declared
from conformance.triage.new.making import doc_of, first_keywords
from conformance.triage.new.place import find_place
from conformance.triage.new.proposal import Alone, Order, port
from conformance.triage.new.script import read_script
from conformance.triage.new.telling import (
    ported_json,
    release_lines,
    summary_lines,
    todo_lines,
    undeclared_lines,
)
from conformance.triage.programs.paste import read_paste, releases_named, thread_of
from conformance.triage.programs.running import ProgramRunner
from conformance.triage.programs.target import Program, Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from conformance.app.context import ProjectContext
    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell
    from conformance.triage.bisect.prober import Prober
    from conformance.triage.new.making import Made
    from conformance.triage.new.place import Place
    from conformance.triage.new.proposal import Ported
    from conformance.triage.new.script import Script

LOOKED_AT: Final = ("0.5.3", "0.6.2", "0.8.3")
"""Releases that are tried first, with the oldest and the newest."""
USUAL: Final = 8
"""Devices of a cell where nothing else is said."""
_NEVER_REQUIRED: Final = frozenset({"jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "ml-dtypes"})


@click.command("new")
@click.argument("script")
@click.option(
    "--family",
    default="",
    metavar="FAMILY",
    type=FAMILIES,
    help="Where it goes.  [default: what fits]",
)
@click.option("--topic", default="", metavar="TOPIC", help="File of it.  [default: reported]")
@click.option("--name", default="", metavar="NAME", help="Its name.  [default: the script's]")
@click.option("--source", default="", metavar="OWNER/REPO#N", help="Where upstream talks of it.")
@click.option(
    "--cell", multiple=True, metavar="SELECTOR", type=CELLS,
    help="Releases to try first; repeatable.  [default: five of all, and what it names]",
)  # fmt: skip
@click.option("--good", default="", metavar="RELEASE", help="Where its value is right.")
@click.option(
    "--devices", type=click.IntRange(1), default=None, metavar="N", help="Devices it needs."
)
@click.option(
    "--timeout", type=click.FloatRange(0.1), default=60.0, show_default=True, metavar="SECONDS",
    help="That it may take.",
)  # fmt: skip
@click.option(
    "--cases", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    help="Folder of the families.  [default: the project's]",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Print the case instead of writing it.")
@jobs_option()
@json_option("what was made")
def command(
    *,
    script: str,
    family: str,
    topic: str,
    name: str,
    source: str,
    cell: tuple[str, ...],
    good: str,
    devices: int | None,
    timeout: float,
    cases: Path | None,
    dry_run: bool,
    jobs: int,
    json_file: Path | None,
) -> int:
    """Make a case of a script that somebody pasted, with the deviations that were seen.

    SCRIPT is a file of Python, or of text with a fenced block of it, with or without prompts; -
    is standard input. It is run over a few releases, as it is and as a case; where they differ the
    first release of each change is found over all of them. What was seen is declared, for you to
    review.

    \b
    conformance new report.py
    conformance new issue.md --family shard_map_while --source jax-ml/jax#27664
    conformance new report.py --good 0.5.3          the value of that release is right
    conformance new report.py --cell '>=0.6'        try each of these, and none before
    conformance new - --name psum_of_nothing --dry-run < report.py

    Nothing is written until all of it was tried; what stands in a file stays as it is. Exit status:
    0 made, 1 made, but something is seen that it does not declare.
    """  # noqa: D301 - \b is click's own mark
    context = load_context()
    if json_file is not None:
        check_writable("--json", json_file)
    console = open_console(json_file)
    text, called = read_report(script)
    pasted = read_paste(text, called)
    read = read_script(pasted, called)
    folder = _cases_folder(context, cases, dry_run=dry_run)
    stem = "" if script == STDIN else Path(called).stem
    place = find_place(folder, read.tree, stem=stem, family=family, topic=topic, name=name)
    place = replace(place, is_own=folder != context.project.cases)
    count = devices or read.settings.devices
    benches = _Benches(context, jobs=jobs, timeout=timeout, devices=count)
    first = _first(context, cell, good, releases_named(text))
    ends = sorted(context.releases.versions.index(release) for release in first)
    between = context.releases.versions[ends[0] : ends[-1] + 1]
    planned, locks = benches.prepared(between, f"cpu{max(count, USUAL)}")
    releases = [one.release for one in planned]
    if missing := sorted(first - set(releases)):
        raise UsageError(f"{', '.join(missing)}: cannot be had here; name others with --cell")
    keywords = first_keywords(
        read, source=thread_of(source) or source or read.thread, devices=count, timeout=timeout,
        requires=_required(read, locks),
    )  # fmt: skip
    order = Order(
        pasted=pasted, script=read, called=called, place=place,
        declared=Declared(doc=doc_of(read, Path(called).name), keywords=keywords),
        first=[number for number, release in enumerate(releases) if release in first],
        good=releases.index(context.release(good, "--good")) if good else None,
    )  # fmt: skip
    console.print(f"{place.id}: family {place.folder.name}, {place.why}")
    with temporary_folder("new") as path:
        bench = benches.of_cases(planned, locks, path)
        alone = benches.of_scripts({n: releases[n] for n in order.first}, path)
        ported = port(order, bench, alone, path, lambda line: console.print(f"  {line} ..."))
    _tell(console, ported, dry_run=dry_run)
    if json_file is not None:
        write_file("--json", json_file, readable_json(ported_json(ported, written=not dry_run)))
    return ExitCode.UNEXPECTED if ported.made.undeclared else ExitCode.OK


def _tell(console: Console, ported: Ported, *, dry_run: bool) -> None:
    """Print what was made; write it, unless it is only to be shown."""
    place, made = ported.order.place, ported.made
    for line in ("", *release_lines(ported), "", *summary_lines(ported)):
        console.print(line)
    if dry_run:
        console.print(f"\n{made.text}")
    else:
        _write(place, made)
        console.print(f"\nwrote {place.file}: {place.id}, a {made.draft.way.kind}")
    for line in todo_lines(ported):
        console.print(f"left to you: {line}")
    if dry_run:
        console.print("a dry run: these commands find the case once it is written")
    for line in undeclared_lines(ported):
        console.print(line)


def _cases_folder(context: ProjectContext, given: Path | None, *, dry_run: bool) -> Path:
    if given is not None:
        return given.absolute()
    if not (context.project.writable or dry_run):
        raise UsageError(
            "no project here to write a case to; name a folder of your own families: --cases DIR"
        )
    return context.project.cases


def _write(place: Place, made: Made) -> None:
    """Write the file of a case, unless it was written to meanwhile."""
    with locked({place.folder.parent}, print_note):  # as `review` does, which edits case files
        there = place.file.read_text(encoding="utf-8") if place.file.exists() else None
        if there != place.there:
            raise UsageError(f"{place.file}: was edited meanwhile; nothing written, do it again")
        write_atomically(place.file, made.file.encode())


def _first(
    context: ProjectContext, selectors: Sequence[str], good: str, named: set[str]
) -> set[str]:
    """Return the releases that are tried first: the first and the last are the ends."""
    known = context.releases.versions
    found = {one for text in selectors for one in resolve_selector(text, context.releases)}
    if unknown := found - set(known):
        raise UsageError(f"--cell {min(unknown)}: expected releases of jax, on CPUs")
    usual = {known[0], known[-1], *(set(known) & {*LOOKED_AT, *named})}
    return (found or usual) | ({context.release(good, "--good")} if good else set())


def _required(script: Script, locks: Mapping[str, Lock]) -> list[str]:
    """Return the packages that a script uses beside jax, of those that cells have."""
    there = {name for lock in locks.values() for name in lock.pins}
    roots = {path.partition(".")[0] for path in script.names.values()} - _NEVER_REQUIRED
    return sorted(root for root in roots if root.replace("_", "-") in there)


class _Benches:
    """Makes what cases and scripts are run by."""

    def __init__(self, context: ProjectContext, *, jobs: int, timeout: float, devices: int) -> None:
        self._context, self._jobs, self._timeout, self._devices = context, jobs, timeout, devices

    def prepared(
        self, releases: Iterable[str], place: str
    ) -> tuple[list[PlannedCell], Mapping[str, Lock]]:
        """Return the cells of some releases that can be planned for, and their locks."""
        cells = [
            cell
            for release in releases
            for cell in select_cells(f"{release}@{place}", self._context.releases)
        ]
        preparation = Session(context=self._context).prepare(cells)
        return list(preparation.cells), preparation.locks

    def of_cases(
        self, planned: Sequence[PlannedCell], locks: Mapping[str, Lock], scratch: Path
    ) -> Bench:
        """Return where drafts are tried."""
        session = Session(context=self._context)
        return Bench(
            cells=planned,
            executor=session.executor(locks, slots=self._jobs),
            cache=session.results,
            blobs=BlobStore(scratch / "blobs"),
            width=self._jobs,
        )

    def of_scripts(self, releases: Mapping[int, str], scratch: Path) -> Alone:
        """Return how the script itself is run, on one device unless it asks for more."""
        planned, locks = self.prepared(releases.values(), "cpu1")
        by_release = {one.release: one for one in planned}

        def prober(file: Path) -> Prober:
            runner = ProgramRunner(
                target=Target(kind=Program.SCRIPT, text=str(file)),
                locks=locks,
                cache=self._context.cache,
                outer=os.environ,
                blobs=BlobStore(scratch / "blobs"),
                timeout=self._timeout,
            )
            return ProgramProber(runner=runner, slots=self._jobs)

        return Alone(
            cells={n: by_release[text] for n, text in releases.items() if text in by_release},
            prober=prober,
        )
