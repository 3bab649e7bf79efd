"""The report on runs: the choice of runs, their history, and the files that it is written as."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.app.context import count_usable_cores
from conformance.app.output_files import print_note
from conformance.app.since import HISTORY
from conformance.app.suite_history import load_committed_history
from conformance.cells.secret_masking import Masker
from conformance.engine.diff_cache import DiffCache
from conformance.engine.digests import DigestStore
from conformance.engine.nights import merge_by_culprit
from conformance.engine.run_directory import UPGRADE, CorruptRunError, RunDirectory
from conformance.engine.run_loader import (
    find_runs,
    load_readable_runs,
    read_evidence,
    read_reproduction,
)
from conformance.errors import ConformanceError, NothingSelectedError
from conformance.files import readable_json, write_atomically
from conformance.garbage_collection import pause_garbage_collection
from conformance.locking import lock_folders
from conformance.report.csv_tables import render_jobs_csv, render_matrix_csv
from conformance.report.history import History, make_history, select_runs
from conformance.report.junit import render_junit
from conformance.report.markdown import render_markdown
from conformance.report.report import CauseEvidence, Report
from conformance.report.report_json import make_report_json, render_json_lines
from conformance.report.site.site import find_first_page, render_site
from conformance.report.upgrade_file import decode_upgrade

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.engine.digests import Digest
    from conformance.engine.run_loader import LoadedRun
    from conformance.model.run_files import Since
    from conformance.report.conformance_history import SuiteHistory
    from conformance.report.upgrade_file import UpgradeFile


MANIFEST: Final = "files.txt"
"""What the site consists of, a path a line: what a later one does not have is removed."""


def write_site(files: Iterable[tuple[str, bytes]], folder: Path) -> None:
    """Write the files of a site.

    Args:
        files: Path below the folder, and content, of each.
        folder: Where to; made if need be. Files that are not of a site are left alone.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    # Of two at once, each would remove pages of the other that it does not have itself.
    with lock_folders({folder}, print_note):
        before = _read_manifest(folder)
        written, masker = [], Masker(os.environ)
        with pause_garbage_collection():
            for path, content in files:
                write_atomically(folder / path, masker.mask_content(content))
                written.append(path)
        text = "".join(f"{path}\n" for path in sorted(written))
        write_atomically(folder / MANIFEST, text.encode())
        for path in before.difference(written):
            (folder / path).unlink(missing_ok=True)


def _read_manifest(folder: Path) -> set[str]:
    """Return what an earlier site consists of; only what lies within the folder is believed."""
    try:
        lines = (folder / MANIFEST).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return set()
    root = folder.resolve()
    return {line for line in lines if (folder / line).resolve().is_relative_to(root)}


SITE: Final = "report"
"""Folder of a run's site, in its directory."""
FORMATS: Final[dict[str, Callable[[Report], bytes]]] = {
    "markdown": lambda report: render_markdown(report).encode(),
    "junit": render_junit,
    "csv": lambda report: render_matrix_csv(report).encode(),
    "jobs_csv": lambda report: render_jobs_csv(report).encode(),
    "json": lambda report: readable_json(make_report_json(report)),
    "jsonl": lambda report: b"\n".join(render_json_lines(report)),
}
"""The file formats of a report, by the name of the option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRuns:
    """The runs that a report is about.

    Attributes:
        report: The report on the runs that are shown.
        history: The history of these and of the others.
        newest: Directory of the newest run.
    """

    report: Report
    history: History
    newest: Path


def load_runs(context: ProjectContext, folders: Sequence[Path], store: str | None) -> ReportedRuns:
    """Load runs for a report; what cannot be read is among the problems of the report.

    Args:
        context: The project.
        folders: Run directories, and folders of them.
        store: Store of runs, which are history too; None for none.

    Raises:
        NothingSelectedError: If no run can be read.
        UsageError: If a folder has no run.
    """
    found = list(map(find_runs, folders))
    every = [run for runs in found for run in runs]
    digests, problems = DigestStore(context.cache / "digests", count_usable_cores()).get_all(every)
    wanted: list[RunDirectory] = []
    for runs in found:
        known = {id(digests[run]): run for run in runs if run in digests}
        wanted += [
            known[id(one)] for one in select_runs(digests[run] for run in runs if run in digests)
        ]
    loaded, worse = load_readable_runs(list(dict.fromkeys(wanted)))
    if not loaded:
        raise NothingSelectedError("\n".join([*problems, *worse]))
    ordered = sorted(loaded, key=lambda run: (run.info.started, run.id))
    newest = next(run.path for run in wanted if run.id == ordered[-1].id)
    upgrades, worst = _load_upgrades(wanted, {run.id for run in loaded})
    evidence, unread = _load_evidence(wanted)
    since, worst_of_all = _load_since(RunDirectory(newest))
    if since is not None:
        since = merge_by_culprit(since, {cause: one.found for cause, one in evidence.items()})
    stored, unstored = _load_stored(store)
    conformance, unkept = _load_suite_histories(context, ordered)
    problems += [*worse, *worst, *worst_of_all, *unread, *unstored, *unkept]
    return ReportedRuns(
        report=Report(
            tuple(ordered), tuple(dict.fromkeys(problems)), upgrades, since, evidence, conformance
        ),
        history=make_history(_merge_digests(digests.values(), stored)),
        newest=newest,
    )


def write_report_site(
    context: ProjectContext, runs: ReportedRuns, folder: Path | None, address: str
) -> Path:
    """Write the site of a report, and return its first page.

    Args:
        context: The project.
        runs: The runs.
        folder: Folder of the site, None for one in the directory of the newest run.
        address: Its future address, for the feed; may be empty.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    folder = folder or runs.newest / SITE
    diffs = DiffCache(context.cache, count_usable_cores())
    write_site(render_site(runs.report, runs.history, diffs, address=address), folder)
    return folder / find_first_page(runs.report)


def _load_stored(store: str | None) -> tuple[list[Digest], list[str]]:
    """Return the digests of the runs of a store, if there is one, and its problems."""
    if not store:
        return [], []
    module = importlib.import_module(HISTORY)
    try:
        return module.load_digests(store), []
    except ConformanceError as error:
        return [], [f"{error}; its runs are no history here"]


def _load_suite_histories(
    context: ProjectContext, runs: Iterable[LoadedRun]
) -> tuple[dict[str, SuiteHistory], list[str]]:
    """Return the committed histories of the suites of runs, and their problems."""
    found, problems = {}, []
    for suite in {run.info.suite.name: run.info.suite for run in runs if run.info.suite}.values():
        try:
            kept = load_committed_history(context, suite.title)
        except ConformanceError as error:
            problems.append(str(error))
            continue
        if kept is not None and kept.suite == suite.name:
            found[suite.name] = kept
    return found, problems


def _merge_digests(own: Iterable[Digest], stored: Iterable[Digest]) -> Iterator[Digest]:
    """Yield the digests of runs, and those of a store that belong to other runs."""
    known = set()
    for digest in own:
        known.add((digest.run, digest.started, digest.finished))
        yield digest
    for digest in stored:
        if (digest.run, digest.started, digest.finished) not in known:
            yield digest


def _load_since(newest: RunDirectory) -> tuple[Since | None, list[str]]:
    """Return the changes of the newest run since the one before, and their problems."""
    try:
        return newest.read_since(), []
    except CorruptRunError as error:
        return None, [str(error)]


def _load_upgrades(
    runs: Iterable[RunDirectory], loaded: Collection[str]
) -> tuple[dict[str, UpgradeFile], list[str]]:
    """Return the results of those runs that were upgrades, and their problems."""
    found, problems = {}, []
    for run in runs:
        try:
            content = run.read_file(UPGRADE) if run.id in loaded else None
            if content is not None:
                found[run.id] = decode_upgrade(content, str(run.path / UPGRADE))
        except ConformanceError as error:
            problems.append(str(error))
    return found, problems


def _load_evidence(runs: Iterable[RunDirectory]) -> tuple[dict[str, CauseEvidence], list[str]]:
    """Return the evidence on root causes, and its problems."""
    found, problems = {}, []
    for run in runs:
        try:
            evidence = read_evidence(run)
        except ConformanceError as error:
            problems.append(str(error))
            continue
        for cause, one in evidence.items():
            found[cause] = CauseEvidence(one, read_reproduction(run, one))
    return found, problems
