"""The report on runs: the selection of runs, their history, and the formats of the report."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.app.context import count_usable_cores
from conformance.app.ecosystem.records import open_results
from conformance.app.output_files import print_note
from conformance.app.since import HISTORY
from conformance.app.suites.history import load_committed_history
from conformance.bench.stored import load_stored_bench
from conformance.cells.secret_masking import Masker
from conformance.engine.cache.differences import DiffCache
from conformance.engine.runs.digests import DigestStore
from conformance.engine.runs.directory import UPGRADE, CorruptRunError, RunDirectory
from conformance.engine.runs.loader import (
    find_runs,
    load_readable_runs,
    read_evidence,
    read_reproduction,
)
from conformance.engine.runs.nights import merge_by_culprit
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
from conformance.report.upgrade.file import decode_upgrade

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.bench.stored import StoredBench
    from conformance.engine.runs.digests import Digest
    from conformance.engine.runs.loader import LoadedRun
    from conformance.model.run_files import Since
    from conformance.report.ecosystem.summary import EcosystemSummary
    from conformance.report.fuzz.summary import FuzzSummary
    from conformance.report.suites.conformance_history import SuiteHistory
    from conformance.report.upgrade.file import UpgradeFile


ECOSYSTEM: Final = "conformance.app.ecosystem.report"
"""Module of the report on libraries."""
FUZZ: Final = "conformance.app.fuzz.report"
"""Module of the report on campaigns."""
MANIFEST: Final = "files.txt"
"""The list of a site's files, one path per line, by which a later site removes old pages."""


def write_site(files: Iterable[tuple[str, bytes]], folder: Path) -> None:
    """Write the files of a site.

    Args:
        files: Path below the folder, and content, of each.
        folder: Folder of the site, created if missing. Files that no site wrote are left alone.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    # Two writers at the same time would each remove the pages that only the other one has.
    with lock_folders({folder}, print_note):
        before = _read_manifest(folder)
        written, masker = [], Masker(os.environ)
        # Pages are rendered while they are written, and hardly any of their objects is garbage.
        with pause_garbage_collection():
            for path, content in files:
                write_atomically(folder / path, masker.mask_content(content))
                written.append(path)
        text = "".join(f"{path}\n" for path in sorted(written))
        write_atomically(folder / MANIFEST, text.encode())
        # Last: until the new pages and their list exist, links to the old pages work.
        for path in before.difference(written):
            (folder / path).unlink(missing_ok=True)


def _read_manifest(folder: Path) -> set[str]:
    """Return the files of an earlier site, without paths that lead out of its folder."""
    try:
        lines = (folder / MANIFEST).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        # Without a readable list nothing is removed; stale pages are the lesser harm.
        return set()
    # Anyone may have edited the list, and its files are deleted: `../` and links are resolved.
    root = folder.resolve()
    return {line for line in lines if (folder / line).resolve().is_relative_to(root)}


MEASUREMENTS: Final = "reports/performance.json"
"""File of the project with measurements of `conformance bench --json`."""
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
    """The runs of a report.

    Attributes:
        report: The report on the runs that are shown.
        history: The history of all runs, shown or not.
        newest: Directory of the newest run.
    """

    report: Report
    history: History
    newest: Path


def load_runs(context: ProjectContext, folders: Sequence[Path], store: str | None) -> ReportedRuns:
    """Load runs for a report, which lists the files that cannot be read as problems.

    Args:
        context: The project.
        folders: Run directories, and folders of them.
        store: Store whose runs are added to the history; None for none.

    Raises:
        NothingSelectedError: If no run can be read.
        UsageError: If a folder has no run.
    """
    runs_by_folder = list(map(find_runs, folders))
    every = [run for runs in runs_by_folder for run in runs]
    digests, problems = DigestStore(context.cache / "digests", count_usable_cores()).get_all(every)
    wanted: list[RunDirectory] = []
    for runs in runs_by_folder:
        # By identity: `select_runs` returns the digests that it is given, in another order.
        known = {id(digests[run]): run for run in runs if run in digests}
        wanted += [
            known[id(one)] for one in select_runs(digests[run] for run in runs if run in digests)
        ]
    # Two folders may hold the same run.
    loaded, unreadable = load_readable_runs(list(dict.fromkeys(wanted)))
    problems += unreadable
    if not loaded:
        raise NothingSelectedError("\n".join(problems))
    ordered = sorted(loaded, key=lambda run: (run.info.started, run.id))
    newest = next(run.path for run in wanted if run.id == ordered[-1].id)
    upgrades, bad_upgrades = _load_upgrades(wanted, {run.id for run in loaded})
    evidence, bad_evidence = _load_evidence(wanted)
    since, bad_changes = _load_since(RunDirectory(newest))
    if since is not None:
        # The changes were written when the run ended; triage found the culprits later.
        since = merge_by_culprit(since, {cause: one.found for cause, one in evidence.items()})
    ecosystem, bad_libraries = _load_outcomes(context)
    stored, bad_store = _load_stored(store)
    conformance, bad_histories = _load_suite_histories(context, ordered)
    fuzz, bad_campaigns = _load_campaigns(context)
    bench, bad_bench = _load_bench(context)
    problems += [
        *bad_campaigns,
        *bad_libraries,
        *bad_bench,
        *bad_upgrades,
        *bad_changes,
        *bad_evidence,
        *bad_store,
        *bad_histories,
    ]
    return ReportedRuns(
        report=Report(
            tuple(ordered),
            tuple(dict.fromkeys(problems)),
            upgrades,
            since,
            evidence,
            conformance,
            fuzz,
            bench,
            ecosystem,
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
        address: Address at which the site will be, for the feed; may be empty.

    Raises:
        InfrastructureError: If the disk refuses.
    """
    folder = folder or runs.newest / SITE
    diffs = DiffCache(context.cache, count_usable_cores())
    write_site(render_site(runs.report, runs.history, diffs, address=address), folder)
    return folder / find_first_page(runs.report)


def _load_stored(store: str | None) -> tuple[list[Digest], list[str]]:
    """Return the digests of the runs of a store, and its problems; both empty without a store."""
    if not store:
        return [], []
    # The database takes long to import, and most reports name no store.
    module = importlib.import_module(HISTORY)
    try:
        return module.load_digests(store), []
    except ConformanceError as error:
        return [], [f"{error}; its runs are no history here"]


def _load_campaigns(context: ProjectContext) -> tuple[FuzzSummary | None, list[str]]:
    """Return the summary of the campaigns of the project, and its problems."""
    if not context.campaigns.is_dir():
        return None, []
    # Hardly any project has campaigns, and their modules take long to import.
    module = importlib.import_module(FUZZ)
    try:
        return module.load_campaigns(context, [context.campaigns]), []
    except NothingSelectedError:
        return None, []
    except ConformanceError as error:
        return None, [str(error)]


def _load_outcomes(context: ProjectContext) -> tuple[EcosystemSummary | None, list[str]]:
    """Return the recorded outcomes of libraries, and their problems."""
    if not open_results(context).exists():
        return None, []
    # Most projects have no libraries, and what explains their failures takes long to load.
    module = importlib.import_module(ECOSYSTEM)
    try:
        return module.load_summary(context), []
    except ConformanceError as error:
        return None, [str(error)]


def _load_bench(context: ProjectContext) -> tuple[StoredBench | None, list[str]]:
    """Return the committed measurements of the project, and its problems."""
    file = context.project.root / MEASUREMENTS
    if not file.is_file():
        return None, []
    try:
        return load_stored_bench(file), []
    except ConformanceError as error:
        return None, [str(error)]


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
        # Two suites may have one title, by which the file is named.
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
        # Not the id alone: a resumed run keeps its id and ends later, with more jobs.
        if (digest.run, digest.started, digest.finished) not in known:
            yield digest


def _load_since(newest: RunDirectory) -> tuple[Since | None, list[str]]:
    """Return the changes of the newest run from the run before it, and their problems."""
    try:
        return newest.read_since(), []
    except CorruptRunError as error:
        return None, [str(error)]


def _load_upgrades(
    runs: Iterable[RunDirectory], loaded: Collection[str]
) -> tuple[dict[str, UpgradeFile], list[str]]:
    """Return the results of the runs that are upgrades, and their problems."""
    found, problems = {}, []
    for run in runs:
        try:
            # A run that could not be loaded has no pages to which its result could belong.
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
