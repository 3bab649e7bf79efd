"""The commit behind a change: the search between two neighbouring releases of a package."""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.utils import canonicalize_name

from conformance.app.bisect import BisectResult, open_trials, search_points
from conformance.app.session import Session
from conformance.app.target import Target, make_log_name, make_preparer
from conformance.cells.nightly import NIGHTLY
from conformance.cells.provision import provision
from conformance.cells.releases import is_nightly
from conformance.cells.repository import open_repository
from conformance.cells.selectors import select_cells
from conformance.cells.source_tree import find_source_package
from conformance.engine.stored_job import StoredJob
from conformance.errors import UsageError
from conformance.model.case import Case
from conformance.search.axes import CONFIG, FLAG, JAX, find_package_moves
from conformance.triage.commits.commit_cells import CommitBase, CommitCells
from conformance.triage.commits.commit_search import CommitFinding, CommitSearch, CommitVerdict
from conformance.triage.commits.render import (
    JAX_URL,
    PackageCulprit,
    format_check,
    format_commit_step,
)
from conformance.triage.commits.xla_revisions import find_jaxlib_range
from conformance.triage.programs.program import ProgramTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.app.context import ProjectContext
    from conformance.app.search_options import SearchOptions
    from conformance.cells.lock import Lock
    from conformance.cells.repository import Repository
    from conformance.engine.job import PlannedCell
    from conformance.search.axes import PackageMove
    from conformance.search.trials import CellTrials

LOGS: Final = Path("reports") / "commits"
"""Folder of the logs of searches, below the project."""
JAX_REPOSITORY: Final = "CONFORMANCE_JAX_REPO"
"""Variable with the path or the URL of a clone of jax."""
_HASH: Final = re.compile(r"[0-9a-f]{7,40}")
_VERSION: Final = re.compile(r"\d[\w.+]*")
_STATED: Final = re.compile(r"""^_git_hash\b[^=\n]*= *["']([0-9a-f]{40})["']""", re.MULTILINE)


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
    bases = _make_bases(found)
    older, newer = (_find_release_commit(repository, package, base, context) for base in bases)
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
    return _make_culprit(package, repository, finding, (older, newer))


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
    place = options.platform or ("cpu1" if isinstance(target, ProgramTarget) else "")
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
    found = BisectResult(answer=answer, axis=package, left_out=(), locks=locks, blobs=trials.blobs)
    finding = CommitFinding(
        verdict=CommitVerdict.COMMIT, cells=cells, states=answer.states, main=answer.main,
        changes=answer.changes, steps=answer.steps, flaky=answer.flaky,
    )  # fmt: skip
    return found, _make_culprit(package, repository, finding, (older, newer))


def are_revisions(options: SearchOptions) -> bool:
    """Say whether the ends of a search are revisions of a repository, and not versions.

    Args:
        options: The options.
    """
    if options.axis == JAX:
        return bool(_HASH.fullmatch(options.good) and _HASH.fullmatch(options.bad))
    return not all(_VERSION.fullmatch(text) for text in (options.good, options.bad))


def find_package_of_axis(axis: str) -> str:
    """Return the package whose commits lie between the points of an axis.

    Args:
        axis: Name of the axis.

    Raises:
        UsageError: If the axis is one of options.
    """
    if axis.startswith((CONFIG, FLAG)):
        raise UsageError(f"--commits: the axis {axis} has no commits, expected a package")
    return JAX if axis == NIGHTLY else canonicalize_name(axis)


def find_location(
    context: ProjectContext, options: SearchOptions, jax_location: str, location: str
) -> str:
    """Return the path or the URL of the repository of the package that a search varies.

    Args:
        context: The project.
        options: The options of the search.
        jax_location: Repository of jax, empty for that of the settings, or the public one.
        location: Repository of another package.

    Raises:
        UsageError: If the axis has no commits, or the repository is not given.
    """
    package = find_package_of_axis(options.axis)
    if package == JAX:
        return find_jax_location(context, jax_location)
    if not location:
        raise UsageError(
            f"--commits: the repository of {package} is unknown; add --repo PATH or URL"
        )
    return location


def find_jax_location(context: ProjectContext, given: str) -> str:
    """Return the path or the URL of the repository of jax.

    Args:
        context: The project.
        given: What the user gives, empty for that of the settings, or the public one.
    """
    return given or context.settings.jax_repository or JAX_URL


def _make_bases(found: BisectResult) -> tuple[CommitBase, CommitBase]:
    answer = found.answer
    main = answer.main
    bases = []
    for number in (main.before, main.after):
        planned = answer.points[number]
        if planned.cell.interpreter is not None:
            raise UsageError(
                f"{answer.labels[number]}: is an environment of yours, whose commit is unknown; "
                "expected releases on both sides of the change"
            )
        lock = found.locks[planned.cell.id]
        bases.append(CommitBase(planned=planned, lock=lock, label=answer.labels[number]))
    return bases[0], bases[1]


def _find_release_commit(
    repository: Repository, package: str, base: CommitBase, context: ProjectContext
) -> str:
    """Return the commit of a release or a nightly: the one that its files state, or its tag."""
    version = base.planned.versions[package]
    names = [f"refs/tags/{tag}" for tag in (f"{package}-v{version}", f"v{version}", version)]
    folder = _find_site_packages(context, base, package)
    stated = read_stated_commit(folder) if folder is not None and package == JAX else ""
    return repository.require_commit(
        [*filter(None, [stated]), *([] if is_nightly(version) else names)], f"tag of {version}"
    )


def read_stated_commit(site_packages: Path) -> str:
    """Return the commit that an installed jax states, empty if it states none.

    Wheels state it from 0.8.1 on.

    Args:
        site_packages: Folder with the installed package.
    """
    try:
        text = (site_packages / JAX / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = _STATED.search(text)
    return found[1] if found else ""


def _find_site_packages(context: ProjectContext, base: CommitBase, package: str) -> Path | None:
    """Return the folder with the installed package, None if it is not installed."""
    python = provision(base.planned.cell, lock=base.lock, cache=context.cache).python
    folders = [Path(base.planned.overlay)] if base.planned.overlay else []
    folders += python.parent.parent.glob("lib/python*/site-packages")
    name = package.replace("-", "_")
    installed = (folder for folder in folders if [*folder.glob(f"{name}-*.dist-info")])
    return next(installed, None)


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
    site_packages = _find_site_packages(context, bases[0], package)
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


def _make_culprit(
    package: str, repository: Repository, finding: CommitFinding, ends: tuple[str, str]
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
        jaxlib=jaxlib,
    )  # fmt: skip
