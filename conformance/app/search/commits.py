"""The commit behind a change: the search between two neighbouring releases of a package."""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.app.search.axes import replace_release
from conformance.app.search.bisect import BisectResult, find_change, open_trials, search_points
from conformance.app.search.commit_ends import (
    find_package_of_axis,
    find_release_commit,
    find_site_packages,
    make_bases,
)
from conformance.app.session import Session
from conformance.app.target import Target, choose_platform, make_log_name, make_preparer
from conformance.cells.nightly import find_nights
from conformance.cells.repository import open_repository
from conformance.cells.selectors import select_cells
from conformance.cells.source_tree import find_source_package
from conformance.engine.runs.stored_job import StoredJob
from conformance.errors import ConformanceError, UsageError
from conformance.model.case import Case
from conformance.search.axes import JAX, AxisPoint, SearchAxis, find_package_moves
from conformance.triage.commits.commit_cells import CommitBase, CommitCells
from conformance.triage.commits.commit_search import CommitFinding, CommitSearch, CommitVerdict
from conformance.triage.commits.render import PackageCulprit, format_check, format_commit_step
from conformance.triage.commits.xla_revisions import find_jaxlib_range
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.app.context import ProjectContext
    from conformance.app.search.options import SearchOptions
    from conformance.cells.lock import Lock
    from conformance.cells.repository import Repository
    from conformance.engine.job import PlannedCell
    from conformance.search.axes import PackageMove
    from conformance.search.trials import CellTrials

LOGS: Final = Path("reports") / "commits"
"""Folder of the logs of searches, below the project."""


def find_commit(
    context: ProjectContext,
    target: Target,
    options: SearchOptions,
    found: BisectResult,
    *,
    location: str,
    say: Callable[[str], None],
) -> PackageCulprit:
    """Find the commit behind the change that a bisection of releases has found.

    Args:
        context: The project.
        target: The target of the bisection.
        options: Its options.
        found: Its result.
        location: Path or URL of the repository of the package.
        say: Called with a line for each trial.

    Raises:
        UsageError: If the axis has no commits, or the repository lacks a release.
        InfrastructureError: If the repository cannot be read, an environment cannot be provided,
            or the disk refuses.
    """
    package, answer = find_package_of_axis(found.axis), found.answer
    repository = open_repository(location, context.cache)
    bases = make_bases(found)
    older, newer = (find_release_commit(repository, package, base, context) for base in bases)
    cells = _make_commit_cells(
        context, repository, package, bases=bases, ends=(older, newer), locks=found.locks
    )
    branch_point = repository.find_merge_base(older, newer)
    folder = cells.package.folder
    titles = {commit.title for commit in repository.list_commits(branch_point, older, [folder])}
    labels = f"{bases[0].label} and {bases[1].label}"
    say(f"{len(cells) - 1} commits change {folder}/ between {labels}")
    with _open_trials(
        Session(context=context), target, options, cells, words=found.axis,
        ends=(answer.points[0], answer.points[len(answer.points) - 1]), say=say,
    ) as trials:  # fmt: skip
        search = CommitSearch(
            cells=cells, trials=trials, predicate=answer.predicate,
            releases=_get_samples(found), is_branched=branch_point != older,
            twins=frozenset(n for n, c in enumerate(cells.commits) if n and c.title in titles),
            width=options.width, report=lambda step: say(format_check(step, cells)),
        )  # fmt: skip
        finding = search.run()
    nights = None
    if finding.verdict is CommitVerdict.ENVIRONMENT and package == JAX:
        # A nightly has a jaxlib of its own: it narrows what no commit of jax explains.
        nights = _search_nights(context, target, options, found, say=say)
        if nights is not None:
            try:
                older, newer = (
                    find_release_commit(repository, package, base, context)
                    for base in make_bases(nights)
                )
            except ConformanceError as error:  # the range of the releases is right, too
                say(f"nightlies: {error}")
    return _make_culprit(package, repository, finding, (older, newer), nights)


def find_commit_between_revisions(
    context: ProjectContext,
    target: Target,
    options: SearchOptions,
    *,
    location: str,
    say: Callable[[str], None],
) -> tuple[BisectResult, PackageCulprit]:
    """Find the commit of a package between two revisions of its repository.

    All commits are tried with the other packages of one release of jax.

    Args:
        context: The project.
        target: The target.
        options: The options; their ends are revisions.
        location: Path or URL of the repository.
        say: Called with a line for each trial.

    Raises:
        UsageError: If the repository lacks a revision, or the revisions are in the wrong order.
        EndpointsError: If no predicate separates the revisions.
        InfrastructureError: If the repository cannot be read, the environment cannot be provided,
            or the disk refuses.
    """
    package = find_package_of_axis(options.axis)
    repository = open_repository(location, context.cache)
    ends = (options.good, options.bad) if options.find == "bad" else (options.bad, options.good)
    older, newer = (repository.require_commit([text], f"revision {text}") for text in ends)
    place = choose_platform(target, options)
    session = Session(context=context)
    selector = f"{context.find_release(options.jax)}{f'@{place}' if place else ''}"
    (cell,) = select_cells(selector, context.releases)
    preparation = make_preparer(session, target, options.wanted)([cell])
    if preparation.exclusions:
        raise UsageError(f"{cell.id}: {preparation.exclusions[0].reason}")
    (planned,) = preparation.cells
    locks = dict(preparation.locks)
    base = CommitBase(planned=planned, lock=locks[cell.id], label=planned.release)
    cells = _make_commit_cells(
        context, repository, package, bases=(base, base), ends=(older, newer), locks=locks
    )
    say(f"{len(cells) - 1} commits change {cells.package.folder}/ between {ends[0]} and {ends[1]}")
    with _open_trials(
        session, target, options, cells, words=f"{package} revisions", ends=(planned, planned),
        say=say,
    ) as trials:  # fmt: skip
        answer = search_points(trials, target, options, cells, width=options.width, scan=True)
    found = BisectResult(
        answer=answer, axis=package, options=options, left_out=(), locks=locks,
        blobs=trials.blobs,
    )  # fmt: skip
    finding = CommitFinding(
        verdict=CommitVerdict.COMMIT, cells=cells, states=answer.states, main=answer.main,
        changes=answer.changes, steps=answer.steps, flaky=answer.flaky,
    )  # fmt: skip
    return found, _make_culprit(package, repository, finding, (older, newer))


def _get_samples(found: BisectResult) -> tuple[Sequence[StoredJob], Sequence[StoredJob]]:
    """Return the samples of both sides of the change."""
    answer = found.answer
    sides = []
    for number in (answer.main.before, answer.main.after):
        steps = (step for step in answer.steps if step.point == number and not step.again)
        sides.append([StoredJob(record, found.blobs) for record in next(steps).samples])
    return sides[0], sides[1]


def _make_commit_cells(
    context: ProjectContext,
    repository: Repository,
    package: str,
    *,
    bases: tuple[CommitBase, CommitBase],
    ends: tuple[str, str],
    locks: dict[str, Lock],
) -> CommitCells:
    """Return the cells of the commits that change a package, after its state at the older end."""
    older, newer = ends
    site_packages = find_site_packages(context, bases[0], package)
    sources = find_source_package(repository, older, package, site_packages)
    changing = repository.list_commits(older, newer, [sources.folder])
    if not changing:
        raise UsageError(
            f"{repository.url}: no commit from {older[:12]} to {newer[:12]} changes "
            f"{sources.folder}/; expected the older end to come first"
        )
    return CommitCells(
        repository=repository, commits=[repository.read_commit(older), *changing],
        package=sources, bases=bases, cache=context.cache, locks=locks,
    )  # fmt: skip


@contextmanager
def _open_trials(
    session: Session,
    target: Target,
    options: SearchOptions,
    cells: CommitCells,
    *,
    words: str,
    ends: tuple[PlannedCell, PlannedCell],
    say: Callable[[str], None],
) -> Iterator[CellTrials[int]]:
    """Open the log of a search among commits.

    Args:
        session: Runs jobs in the project.
        target: The target.
        options: The options.
        cells: The commits.
        words: Words of the question that the options lack.
        ends: Cells whose packages decide on the requirements of a program.
        say: Called with a line for each trial.
    """
    name = make_log_name(target, f"{words} {options.jax} {options.platform} {options.words}")
    with closing(session.make_warm_executor(cells.locks, slots=options.width)) as executor:
        if isinstance(target, Case):
            # The worker that imports a commit first is the one that runs the case.
            cells.find_import_problem = executor.start
        with open_trials(
            session, target, LOGS / name, options, cells.locks, ends=ends,
            cell_of=cells.__getitem__, name_of=cells.labels.__getitem__, prepare=cells.prepare,
            executor=executor, progress=lambda step: say(format_commit_step(step, cells)),
        ) as trials:  # fmt: skip
            yield trials


def _search_nights(
    context: ProjectContext,
    target: Target,
    options: SearchOptions,
    found: BisectResult,
    *,
    say: Callable[[str], None],
) -> BisectResult | None:
    """Search the nightlies between both sides of a change, None if the index has none of them."""
    main, points = found.answer.main, found.answer.points
    ends = [points[number] for number in (main.before, main.after)]
    try:
        older, newer = (Version(planned.versions[JAX]) for planned in ends)
        nights, refused = find_nights(older, newer, context.releases.nightlies)
        if not nights:
            return None
        first, last = (AxisPoint(label=planned.release, cell=planned.cell) for planned in ends)
        between = [
            AxisPoint(label=night, cell=replace_release(last.cell, night, context))
            for night in nights
            if night not in (first.label, last.label)
        ]
        say(f"{plural(len(between), 'nightly', 'nightlies')} between the two")
        axis = SearchAxis(name=JAX, points=[first, *between, last], refused=refused)
        return find_change(context, target, options, say, axis=axis)
    except ConformanceError as error:
        # The index keeps few nightlies, and may not answer: the releases are known without it.
        say(f"nightlies: {error}")
        return None


def _make_culprit(
    package: str,
    repository: Repository,
    finding: CommitFinding,
    ends: tuple[str, str],
    nights: BisectResult | None = None,
) -> PackageCulprit:
    older, newer = finding.cells.bases
    files: tuple[str, ...] = ()
    if len(finding.candidates) == 1:
        files = tuple(repository.list_changed_files(finding.candidates[0].hash))
    moves: tuple[PackageMove, ...] = ()
    jaxlib = None
    if finding.verdict in (CommitVerdict.ENVIRONMENT, CommitVerdict.INTERACTION):
        both = find_package_moves(older.planned.versions, newer.planned.versions)
        moves = tuple(move for move in both if move.package != package)
        if package == JAX:
            jaxlib = find_jaxlib_range(repository, *ends)
    return PackageCulprit(
        package=package, finding=finding, url=repository.url, files=files, moves=moves,
        jaxlib=jaxlib, nights=_name_nights(nights),
    )  # fmt: skip


def _name_nights(nights: BisectResult | None) -> tuple[str, str] | None:
    """Return the versions on both sides of a change between nightlies."""
    if nights is None:
        return None
    main, labels = nights.answer.main, nights.answer.labels
    return labels[main.before], labels[main.after]
