"""The history of a named suite: its results by release, stored with the project."""

from __future__ import annotations

import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from conformance.app.output_files import print_note
from conformance.app.session import Session
from conformance.engine.plan import make_plan
from conformance.engine.runs.directory import RUN
from conformance.engine.runs.golden_history import find_recorded_outcomes
from conformance.engine.runs.loader import find_runs, load_run
from conformance.errors import ConformanceError, UsageError
from conformance.files import describe_os_error, write_atomically
from conformance.judge.conformance import select_deviations
from conformance.locking import lock_folders
from conformance.report.suites.conformance_data import decode_history, encode_history
from conformance.report.suites.conformance_history import (
    SuiteHistory,
    SuiteOutcome,
    SuiteResult,
    TrackedTest,
)
from conformance.report.suites.conformance_markdown import render_conformance
from conformance.report.suites.conformance_runs import (
    explain_incomplete,
    get_suite,
    make_suite_history,
    merge_histories,
)
from conformance.report.text import flatten
from conformance.suites.catalogue.definition import OTHER, load_grouping, load_groups
from conformance.suites.catalogue.standards import CLAIMED
from conformance.suites.known.deviations import load_known_failures
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.engine.job import Job
    from conformance.engine.runs.loader import LoadedRun
    from conformance.suites.catalogue.definition import NamedSuite

FOLDER: Final = "reports"
MATRIX: Final = "releases"
"""Matrix whose cells the goldens of our own cases are taken from."""
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]+")


class StaleHistoryError(ConformanceError):
    """A stored page differs from its data."""

    exit_code = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryUpdate:
    """A history before and after an update.

    Attributes:
        before: The earlier history, None if there was none.
        after: The history with the runs.
        files: The data and the page, by path.
    """

    before: SuiteHistory | None
    after: SuiteHistory
    files: Mapping[Path, bytes]

    @property
    def data(self) -> dict[str, Any]:
        """The releases, the files and the tests of no group as JSON has them."""
        known = {one.release for one in self.before.releases} if self.before else set()
        releases = [one.release for one in self.after.releases]
        return {
            "releases": releases,
            "new": [release for release in releases if release not in known],
            "files": list(map(str, self.files)),
            "ungrouped": self.ungrouped_tests,
        }

    @property
    def summary(self) -> str:
        """The releases and the files, in a line."""
        data = self.data
        # In a new history every release is new, which is no news.
        new = f", {', '.join(data['new'])} new" if data["new"] and self.before else ""
        count = plural(len(data["releases"]), "release")
        return f"{count}{new}; written: {', '.join(data['files'])}"

    @property
    def ungrouped_tests(self) -> list[str]:
        """Names of the tests that belong to no group."""
        return sorted(name for name, one in self.after.tests.items() if one.group == OTHER)


def update_history(
    context: ProjectContext,
    suite: NamedSuite,
    runs: Sequence[Path],
    file: Path | None = None,
    *,
    check: bool = False,
) -> HistoryUpdate:
    """Add runs to the history of a suite, and write its data and its page.

    Args:
        context: The project.
        suite: The suite.
        runs: Run directories, and folders of them.
        file: File of the data, None for that of the project.
        check: Whether to write nothing, and only compare the files with the data.

    Raises:
        UsageError: If the data cannot be read, or a run does not go with them.
        StaleHistoryError: If a file is compared, and differs.
    """
    file = file or find_history_file(context, suite.definition.title)
    if check and runs:
        raise UsageError("--check compares the present pages: give it no run")
    if file.suffix != ".json":
        raise UsageError(f"--file: expected a name that ends in .json, got {file}")
    # Locked from reading the data to writing them, so that two updates do not lose releases.
    with nullcontext() if check else lock_folders({file.parent}, print_note):
        update = _make_update(context, suite, file, runs)
        if check:
            _compare_files(update.files, suite.name)
        else:
            for path, content in update.files.items():
                write_atomically(path, content)
    return update


def find_history_file(context: ProjectContext, title: str) -> Path:
    """Return the default file of the history of a suite.

    Args:
        context: The project.
        title: The suite's title.
    """
    name = _NOT_IN_NAMES.sub("-", title.lower()).strip("-") or "suite"
    return context.project.root / FOLDER / f"{name}.json"


def read_history(file: Path) -> SuiteHistory | None:
    """Return the history in a file, None if there is no file.

    Args:
        file: The file.

    Raises:
        UsageError: If it cannot be read.
    """
    try:
        return decode_history(file.read_bytes(), str(file))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {describe_os_error(error)}") from None


def load_committed_history(context: ProjectContext, title: str) -> SuiteHistory | None:
    """Return the committed history of a suite, None where there is none.

    Args:
        context: The project.
        title: The suite's title.

    Raises:
        UsageError: If it cannot be read.
    """
    return read_history(find_history_file(context, title)) if title else None


def _make_update(
    context: ProjectContext, suite: NamedSuite, file: Path, runs: Sequence[Path]
) -> HistoryUpdate:
    before = read_history(file)
    after = _add_runs(before, runs, suite, context)
    if after is None:
        raise UsageError(f"{file}: there are no data, and no run is named to make them from")
    after = replace(after, own_cases=_collect_own_cases(context, suite, after))
    data = encode_history(after)
    # Rendered from the encoded data, where the order of the runs has no influence.
    page = render_conformance(decode_history(data, str(file))).encode()
    files = {file: data, file.with_suffix(".md"): page}
    return HistoryUpdate(before=before, after=after, files=files)


def _add_runs(
    known: SuiteHistory | None, paths: Sequence[Path], suite: NamedSuite, context: ProjectContext
) -> SuiteHistory | None:
    dates = {release.version: f"{release.date:%Y-%m-%d}" for release in context.releases.rows}
    group = load_grouping(suite.folder)
    for run, named in _load_complete_runs(paths, suite.name):
        settings = get_suite(run).settings
        # Runs are judged by the current known failures, so that accepting failures needs no new
        # run.
        deviations = load_known_failures(
            suite.folder, examples=settings.get("max_examples"), seed=settings.get("seed"),
            standard=settings.get("standard", CLAIMED),
        )  # fmt: skip
        try:
            known = merge_histories(known, make_suite_history(run, dates, group, deviations))
        except UsageError as error:
            if not named:
                print_note(f"{run.id}: is passed over: {error}")
                continue
            raise UsageError(
                f"{run.id}: {error}; keep it under another --file, or start again without the data"
            ) from None
    if known is None:
        return None
    tests = {
        # Grouped again: the groups may have changed since a release was added.
        name: replace(one, group=group(name) or one.group)
        for name, one in known.tests.items()
    }
    return replace(known, tests=tests)


def _load_complete_runs(paths: Sequence[Path], suite: str) -> list[tuple[LoadedRun, bool]]:
    """Return the runs of a suite, the oldest first, each with whether its own path was given.

    Other runs are found in a folder: runs of other suites are skipped there, and incomplete ones
    are reported.

    Raises:
        UsageError: If a run whose path was given is of another suite, or incomplete.
    """
    loaded = []
    for path in paths:
        named = (path / RUN).exists()
        for directory in find_runs(path):
            run = load_run(directory)
            if not named and (run.info.suite is None or run.info.suite.name != suite):
                continue
            if get_suite(run).name != suite:
                raise UsageError(f"{run.id}: is a run of {get_suite(run).name}, expected {suite}")
            wrong = explain_incomplete(run)
            if wrong and named:
                raise UsageError(
                    f"{run.id}: {wrong}; run the suite whole, and to its end: "
                    f"conformance suite run {suite}"
                )
            if wrong:
                print_note(f"{run.id}: is passed over: {wrong}")
            else:
                loaded.append((run, named))
    # By start: the results of a later run replace those of an earlier one.
    return sorted(loaded, key=lambda one: (one[0].info.started, one[0].id))


def _collect_own_cases(
    context: ProjectContext, suite: NamedSuite, history: SuiteHistory
) -> dict[str, TrackedTest]:
    """Return the results of the project's own cases in the releases of a history, by case."""
    groups = load_groups(suite.folder)
    # Most suites name no cases of the project as their complement.
    if groups is None or not groups.beside:
        return {}
    releases = {held.release for held in history.releases}
    cells = [cell for cell in context.select_cells(MATRIX, ())[0] if cell.release in releases]
    plan = make_plan(
        context.select_cases(groups.beside), Session(context=context).plan_recorded(cells)
    )
    # From goldens instead of runs, so that the page needs no run of the project's cases.
    found: dict[str, dict[str, SuiteResult]] = {}
    for job, _ in find_recorded_outcomes(plan):
        found.setdefault(job.case.id, {})[job.planned.release] = _make_recorded_result(job)
    docs = {job.case.id: flatten(job.case.doc.partition("\n\n")[0]) for job in plan.jobs}
    return {
        name: TrackedTest(group=name.partition("/")[0], results=results, doc=docs[name])
        for name, results in sorted(found.items())
    }


def _make_recorded_result(job: Job) -> SuiteResult:
    """Return the recorded result of a case: known to fail if a deviation covers it, else passed."""
    planned = job.planned
    covered = select_deviations(job.case, planned.release, planned.cell.platform, planned.versions)
    # A golden is only accepted if the case conforms or its deviation is declared.
    if not covered:
        return SuiteResult(outcome=SuiteOutcome.PASSED)
    return SuiteResult(
        outcome=SuiteOutcome.KNOWN, reason=flatten(covered[0].reason), issue=covered[0].issue
    )


def _compare_files(files: Mapping[Path, bytes], suite: str) -> None:
    for path, content in files.items():
        if not path.exists() or path.read_bytes() != content:
            raise StaleHistoryError(
                f"{path}: differs from the data, the groups and the goldens; regenerate it: "
                f"conformance suite history {suite}"
            )
