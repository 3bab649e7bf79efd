"""The commit behind a change: the search between two neighbouring releases of a package."""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.utils import canonicalize_name

from conformance.app.bisect import open_trials
from conformance.app.session import Session
from conformance.app.target import make_log_name
from conformance.cells.provision import provision
from conformance.cells.releases import is_nightly
from conformance.cells.repository import open_repository
from conformance.cells.source_tree import find_source_package
from conformance.engine.stored_job import StoredJob
from conformance.errors import UsageError
from conformance.model.case import Case
from conformance.search.axes import CONFIG, FLAG, JAX, find_package_moves
from conformance.triage.commits.commit_cells import CommitBase, CommitCells
from conformance.triage.commits.commit_search import CommitSearch, CommitVerdict
from conformance.triage.commits.render import (
    JAX_URL,
    PackageCulprit,
    format_check,
    format_commit_step,
)
from conformance.triage.commits.xla_revisions import find_jaxlib_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from conformance.app.bisect import BisectResult
    from conformance.app.context import ProjectContext
    from conformance.app.search_options import SearchOptions
    from conformance.app.target import Target
    from conformance.cells.repository import Repository
    from conformance.search.axes import PackageMove
    from conformance.search.trials import CellTrials
    from conformance.triage.commits.commit_search import CommitFinding

LOGS: Final = Path("reports") / "commits"
"""Folder of the logs of searches, below the project."""
JAX_REPOSITORY: Final = "CONFORMANCE_JAX_REPO"
"""Variable with the path or the URL of a clone of jax."""
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
    site_packages = _find_site_packages(context, bases[0], package)
    sources = find_source_package(repository, older, package, site_packages)
    first = repository.read_commit(older)
    commits = [first, *repository.list_commits(older, newer, [sources.folder])]
    if len(commits) == 1:
        raise UsageError(
            f"{repository.url}: no commit between {bases[0].label} and {bases[1].label} changes "
            f"{sources.folder}/"
        )
    cells = CommitCells(
        repository=repository, commits=commits, package=sources, bases=bases,
        cache=context.cache, locks=found.locks,
    )  # fmt: skip
    branch_point = repository.find_merge_base(older, newer)
    titles = {c.title for c in repository.list_commits(branch_point, older, [sources.folder])}
    say(f"{len(commits) - 1} commits change {sources.folder}/ between {bases[0].label} and "
        f"{bases[1].label}")  # fmt: skip
    with _open_commit_trials(context, target, options, found, cells, say=say) as trials:
        search = CommitSearch(
            cells=cells, trials=trials, predicate=answer.predicate,
            releases=_get_samples(found), is_branched=branch_point != older,
            twins=frozenset(n for n, c in enumerate(commits) if n and c.title in titles),
            width=options.width, report=lambda step: say(format_check(step, cells)),
        )  # fmt: skip
        finding = search.run()
    return _make_culprit(package, repository, finding, (older, newer))


def find_package_of_axis(axis: str) -> str:
    """Return the package whose commits lie between the points of an axis.

    Args:
        axis: Name of the axis.

    Raises:
        UsageError: If the axis is one of options.
    """
    if axis.startswith((CONFIG, FLAG)):
        raise UsageError(f"--commits: the axis {axis} has no commits, expected a package")
    return canonicalize_name(axis)


def find_location(context: ProjectContext, package: str, given: str) -> str:
    """Return the path or the URL of the repository of a package.

    Args:
        context: The project.
        package: The package.
        given: What the user gives, empty for the default of jax.

    Raises:
        UsageError: If the repository is unknown.
    """
    if given or package == JAX:
        return given or context.settings.jax_repository or JAX_URL
    raise UsageError(f"--commits: the repository of {package} is unknown; add --repo PATH or URL")


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


@contextmanager
def _open_commit_trials(
    context: ProjectContext,
    target: Target,
    options: SearchOptions,
    found: BisectResult,
    cells: CommitCells,
    *,
    say: Callable[[str], None],
) -> Iterator[CellTrials[int]]:
    """Open the log of the search, with the packages of the ends of the bisection."""
    session = Session(context=context)
    points = found.answer.points
    words = f"{found.axis} {options.jax} {options.platform} {options.words}"
    with closing(session.make_warm_executor(found.locks, slots=options.width)) as executor:
        if isinstance(target, Case):
            # The worker that imports a commit first is the one that runs the case.
            cells.find_import_problem = executor.start
        with open_trials(
            session, target, LOGS / make_log_name(target, words), options,
            found.locks, ends=(points[0], points[-1]), cell_of=cells.__getitem__,
            name_of=cells.labels.__getitem__, prepare=cells.prepare, executor=executor,
            progress=lambda step: say(format_commit_step(step, cells)),
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
