"""`conformance new`: a pasted script becomes a case, run on several releases and then written."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.app.output_files import print_note
from conformance.app.session import Session
from conformance.app.target import STDIN, read_report
from conformance.cells.selectors import resolve_selector, select_cells
from conformance.engine.cache.blobs import BlobStore
from conformance.errors import UsageError
from conformance.files import write_atomically
from conformance.locking import lock_folders
from conformance.scratch import temporary_folder
from conformance.triage.new.case_file import Declarations
from conformance.triage.new.placement import find_placement
from conformance.triage.new.porting import PortRequest, decide_keywords, port
from conformance.triage.new.script import read_script
from conformance.triage.new.trials import CaseRunner
from conformance.triage.programs.needed_devices import count_named_devices
from conformance.triage.programs.pasted_report import find_thread, read_paste
from conformance.triage.programs.program import ProgramKind, ProgramTarget
from conformance.triage.programs.report_facts import find_releases
from conformance.triage.programs.runner import ProgramRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from conformance.app.context import ProjectContext
    from conformance.cells.lock import Lock
    from conformance.engine.workers.preparation import Preparation
    from conformance.model.record import Record
    from conformance.triage.new.porting import PortedCase
    from conformance.triage.new.script import Script

SAMPLED: Final = ("0.5.3", "0.6.2", "0.8.3")
"""Releases that are tried first, with the oldest and the newest."""
USUAL: Final = 8
"""Devices of a cell, unless the script needs more."""
_NEVER_REQUIRED: Final = frozenset({"jax", "jaxlib", "numpy", "scipy", "ml_dtypes", "ml-dtypes"})
"""Packages of every cell, which a case need not require."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewOptions:
    """Options of `conformance new`.

    Attributes:
        family: The family of the case, empty for the best match.
        topic: The file of the case, empty for the default.
        name: The name of the case, empty for the name of the script.
        source: The upstream thread, empty for the thread in the script.
        cell: Selectors of the releases to try first, empty for a sample.
        good: The release with the right value, empty for the newest that runs the script.
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
) -> PortedCase:
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
    # Checked before any cell is looked up, which may use the network.
    folder = _find_cases_folder(context, options.cases, dry_run=options.dry_run)
    # Standard input has no file name from which a case could take its own.
    stem = "" if script == STDIN else Path(called).stem
    placement = find_placement(
        folder, read.source.tree, stem=stem, family=options.family, topic=options.topic,
        name=options.name,
    )  # fmt: skip
    # The proposed commands must name the folder if it is not that of the project.
    placement = replace(placement, is_external=folder != context.project.cases)
    named = count_named_devices(pasted.text)
    count = options.devices or max(read.settings.devices, named)
    good = context.find_release(options.good, "--good") if options.good else ""
    # Releases in the report are tried, because its author saw the failure there.
    first = _select_first_releases(context, options.cell, find_releases(text)) | ({good} - {""})
    known = context.releases.versions
    # Cells of all releases in between are prepared: bisection may need any of them.
    ends = sorted(known.index(release) for release in first)
    cells = _prepare_releases(context, known[ends[0] : ends[-1] + 1], f"cpu{max(count, USUAL)}")
    releases = [one.release for one in cells.cells]
    # Releases in between may be missing, those that were asked for may not.
    if missing := sorted(first - {*releases}):
        raise UsageError(f"{', '.join(missing)}: cannot be had here; name others with --cell")
    source = find_thread(options.source) or options.source or read.thread
    keywords = decide_keywords(
        read, source=source, devices=count, timeout=options.timeout,
        requires=_find_required_packages(read, cells.locks),
    )  # fmt: skip
    doc = read.doc or f"The behaviour of {Path(called).name}."
    numbers = [number for number, release in enumerate(releases) if release in first]
    request = PortRequest(
        pasted=pasted, script=read, name=called, placement=placement,
        declarations=Declarations(doc=doc, keywords=keywords), first=numbers,
        good=releases.index(good) if good else None,
    )  # fmt: skip
    say(f"{placement.id}: family {placement.folder.name}, {placement.why}")
    with temporary_folder("new") as scratch:
        session, blobs = Session(context=context), BlobStore(scratch / "blobs")
        jobs = session.make_job_runner(
            session.make_executor(cells.locks, slots=options.jobs), blobs
        )
        runner = CaseRunner(cells=cells.cells, job_runner=jobs, width=options.jobs)
        # The script runs on one CPU, as without the harness, unless it names more; the case runs
        # on the devices it declares.
        place = f"cpu{max(named, 1)}"
        alone = _prepare_releases(context, [releases[number] for number in numbers], place)

        def run_script(file: Path) -> dict[int, Record]:
            prober = ProgramRunner(
                target=ProgramTarget(kind=ProgramKind.SCRIPT, text=str(file)), locks=alone.locks,
                cache=context.cache, outer=os.environ, blobs=blobs, timeout=options.timeout,
                slots=options.jobs,
            )  # fmt: skip
            # A release without such a cell is left out, so positions differ from those of `alone`.
            places = [releases.index(planned.release) for planned in alone.cells]
            return dict(zip(places, prober.probe(alone.cells), strict=True))

        return port(request, runner, run_script, scratch, lambda line: say(f"  {line} ..."))


def _prepare_releases(context: ProjectContext, releases: Iterable[str], place: str) -> Preparation:
    """Look up the cells of some releases, one on each."""
    texts = (f"{release}@{place}" for release in releases)
    cells = [cell for text in texts for cell in select_cells(text, context.releases)]
    return Session(context=context).prepare(cells)


def write_case(ported: PortedCase) -> None:
    """Write the file of a case.

    Args:
        ported: The script made a case.

    Raises:
        UsageError: If the file was written to meanwhile.
    """
    placement = ported.request.placement
    file = placement.file
    # `review` holds the same lock while it edits case files.
    with lock_folders({placement.folder.parent}, print_note):
        content = file.read_text(encoding="utf-8") if file.exists() else None
        # The trials took minutes: an edit of the file in the meantime must not be overwritten.
        if content != placement.content:
            raise UsageError(f"{file}: was edited meanwhile; nothing written, do it again")
        write_atomically(file, ported.file.encode())


def _find_cases_folder(context: ProjectContext, given: Path | None, *, dry_run: bool) -> Path:
    if given is not None:
        return given.absolute()
    # Cases of an installed package would be lost with its next release.
    if not (context.project.writable or dry_run):
        raise UsageError(
            "no project here to write a case to; name a folder of your own families: --cases DIR"
        )
    return context.project.cases


def _select_first_releases(
    context: ProjectContext, selectors: Sequence[str], named: set[str]
) -> set[str]:
    """Return the releases that are tried first; the oldest and the newest are the ends."""
    known = context.releases.versions
    selected = {one for text in selectors for one in resolve_selector(text, context.releases)}
    if unknown := selected - set(known):
        raise UsageError(f"--cell {min(unknown)}: expected releases of jax, on CPUs")
    return selected or {known[0], known[-1], *(set(known) & {*SAMPLED, *named})}


def _find_required_packages(script: Script, locks: Mapping[str, Lock]) -> list[str]:
    """Return the packages of cells that a script imports, without those of every cell."""
    installed = {name for lock in locks.values() for name in lock.pins}
    roots = {path.partition(".")[0] for path in script.source.names.values()} - _NEVER_REQUIRED
    # A module without a lock entry is the user's own or of the standard library.
    return sorted(root for root in roots if root.replace("_", "-") in installed)
