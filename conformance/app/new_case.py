"""A case made of a pasted script, as `conformance new` does: run over releases, then written."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.app.notes import print_note
from conformance.app.report_input import STDIN, read_report
from conformance.app.session import Session
from conformance.cells.selectors import resolve_selector, select_cells
from conformance.engine.blobs import BlobStore
from conformance.errors import UsageError
from conformance.files import write_atomically
from conformance.locking import locked
from conformance.scratch import temporary_folder
from conformance.triage.new.bench import Bench
from conformance.triage.new.file import Declared
from conformance.triage.new.making import doc_of, first_keywords
from conformance.triage.new.place import find_place
from conformance.triage.new.proposal import Alone, Order, port
from conformance.triage.new.script import read_script
from conformance.triage.programs.paste import read_paste, releases_named, thread_of
from conformance.triage.programs.program import Program, ProgramKind
from conformance.triage.programs.running import ProgramRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.app.context import ProjectContext
    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell
    from conformance.search.prober import Prober
    from conformance.triage.new.proposal import Ported
    from conformance.triage.new.script import Script

SAMPLED: Final = ("0.5.3", "0.6.2", "0.8.3")
"""Releases that are tried first, with the oldest and the newest."""
USUAL: Final = 8
"""Devices of a cell, unless the script needs more."""
_NEVER_REQUIRED: Final = frozenset({"jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "ml-dtypes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOptions:
    """Options of `conformance new`.

    Attributes:
        family: The family of the case, empty for the one that fits.
        topic: The file of the case, empty for the default.
        name: The name of the case, empty for the name of the script.
        source: The upstream thread, empty for the one that the script names.
        cell: Selectors of the releases to try first, empty for a sample.
        good: The release in which the value is right, empty for the newest that runs it.
        devices: Devices that the script needs, None to recognise it.
        timeout: Seconds that the script may take.
        cases: Folder of the families, None for the project's.
        dry_run: Whether the case is printed instead of written.
        jobs: Jobs at the same time.
    """

    family: str
    topic: str
    name: str
    source: str
    cell: tuple[str, ...]
    good: str
    devices: int | None
    timeout: float
    cases: Path | None
    dry_run: bool
    jobs: int


def port_script(
    context: ProjectContext, script: str, options: NewOptions, say: Callable[[str], None]
) -> Ported:
    """Make a case of a script; nothing is written.

    Args:
        context: The project.
        script: File of the script, or of a text with one; `-` for standard input.
        options: The options.
        say: Called with each step, in a line.

    Raises:
        UsageError: If no case can be made of it, or a release cannot be had.
        InfrastructureError: If a cell cannot be provided.
    """
    text, called = read_report(script)
    pasted = read_paste(text, called)
    read = read_script(pasted, called)
    folder = _cases_folder(context, options.cases, dry_run=options.dry_run)
    stem = "" if script == STDIN else Path(called).stem
    place = find_place(
        folder, read.tree, stem=stem, family=options.family, topic=options.topic, name=options.name
    )
    place = replace(place, is_own=folder != context.project.cases)
    count = options.devices or read.settings.devices
    benches = _Benches(context, jobs=options.jobs, timeout=options.timeout)
    first = _first(context, options.cell, releases_named(text))
    good = context.release(options.good, "--good") if options.good else ""
    first |= {good} if good else set()
    ends = sorted(context.releases.versions.index(release) for release in first)
    between = context.releases.versions[ends[0] : ends[-1] + 1]
    planned, locks = benches.prepared(between, f"cpu{max(count, USUAL)}")
    releases = [one.release for one in planned]
    if missing := sorted(first - set(releases)):
        raise UsageError(f"{', '.join(missing)}: cannot be had here; name others with --cell")
    source = thread_of(options.source) or options.source or read.thread
    keywords = first_keywords(
        read, source=source, devices=count, timeout=options.timeout,
        requires=_required(read, locks),
    )  # fmt: skip
    order = Order(
        pasted=pasted, script=read, called=called, place=place,
        declared=Declared(doc=doc_of(read, Path(called).name), keywords=keywords),
        first=[number for number, release in enumerate(releases) if release in first],
        good=releases.index(good) if good else None,
    )  # fmt: skip
    say(f"{place.id}: family {place.folder.name}, {place.why}")
    with temporary_folder("new") as path:
        bench = benches.of_cases(planned, locks, path)
        alone = benches.of_scripts({n: releases[n] for n in order.first}, path)
        return port(order, bench, alone, path, lambda line: say(f"  {line} ..."))


def write_case(ported: Ported) -> None:
    """Write the file of a case.

    Args:
        ported: The script made a case.

    Raises:
        UsageError: If the file was written to meanwhile.
    """
    place = ported.order.place
    with locked({place.folder.parent}, print_note):  # as `review` does, which edits case files
        there = place.file.read_text(encoding="utf-8") if place.file.exists() else None
        if there != place.there:
            raise UsageError(f"{place.file}: was edited meanwhile; nothing written, do it again")
        write_atomically(place.file, ported.made.file.encode())


def _cases_folder(context: ProjectContext, given: Path | None, *, dry_run: bool) -> Path:
    if given is not None:
        return given.absolute()
    if not (context.project.writable or dry_run):
        raise UsageError(
            "no project here to write a case to; name a folder of your own families: --cases DIR"
        )
    return context.project.cases


def _first(context: ProjectContext, selectors: Sequence[str], named: set[str]) -> set[str]:
    """Return the releases that are tried first: the first and the last are the ends."""
    known = context.releases.versions
    found = {one for text in selectors for one in resolve_selector(text, context.releases)}
    if unknown := found - set(known):
        raise UsageError(f"--cell {min(unknown)}: expected releases of jax, on CPUs")
    return found or {known[0], known[-1], *(set(known) & {*SAMPLED, *named})}


def _required(script: Script, locks: Mapping[str, Lock]) -> list[str]:
    """Return the packages that a script uses beside jax, of those that cells have."""
    there = {name for lock in locks.values() for name in lock.pins}
    roots = {path.partition(".")[0] for path in script.names.values()} - _NEVER_REQUIRED
    return sorted(root for root in roots if root.replace("_", "-") in there)


class _Benches:
    """Makes what cases and scripts are run by."""

    def __init__(self, context: ProjectContext, *, jobs: int, timeout: float) -> None:
        self._context, self._jobs, self._timeout = context, jobs, timeout

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
            return ProgramRunner(
                target=Program(kind=ProgramKind.SCRIPT, text=str(file)),
                locks=locks,
                cache=self._context.cache,
                outer=os.environ,
                blobs=BlobStore(scratch / "blobs"),
                timeout=self._timeout,
                slots=self._jobs,
            )

        return Alone(
            cells={n: by_release[text] for n, text in releases.items() if text in by_release},
            prober=prober,
        )
