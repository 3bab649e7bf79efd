"""The repository of a package, and the commits of its releases."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.utils import canonicalize_name

from conformance.cells.nightly import NIGHTLY
from conformance.cells.provision import provision
from conformance.cells.releases import is_nightly
from conformance.errors import UsageError
from conformance.search.axes import CONFIG, FLAG, JAX
from conformance.triage.commits.commit_cells import CommitBase
from conformance.triage.commits.render import JAX_URL

if TYPE_CHECKING:
    from conformance.app.context import ProjectContext
    from conformance.app.search.bisect import BisectResult
    from conformance.app.search.options import SearchOptions
    from conformance.cells.repository import Repository

JAX_REPOSITORY: Final = "CONFORMANCE_JAX_REPO"
"""Variable with the path or the URL of a clone of jax."""
_HASH: Final = re.compile(r"[0-9a-f]{7,40}")
_VERSION: Final = re.compile(r"\d[\w.+]*")
_STATED: Final = re.compile(r"""^_git_hash\b[^=\n]*= *["']([0-9a-f]{40})["']""", re.MULTILINE)


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


def are_revisions(options: SearchOptions) -> bool:
    """Say whether the ends of a search are revisions of a repository, and not versions.

    Args:
        options: The options.
    """
    if options.axis == JAX:
        return bool(_HASH.fullmatch(options.good) and _HASH.fullmatch(options.bad))
    return not all(_VERSION.fullmatch(text) for text in (options.good, options.bad))


def make_bases(found: BisectResult) -> tuple[CommitBase, CommitBase]:
    """Return the environments on both sides of the change that a bisection has found.

    Args:
        found: The result of the bisection.

    Raises:
        UsageError: If one is an existing environment, whose commit is unknown.
    """
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


def find_release_commit(
    repository: Repository, package: str, base: CommitBase, context: ProjectContext
) -> str:
    """Return the commit of a release or a nightly: the one that its files state, or its tag."""
    version = base.planned.versions[package]
    names = [f"refs/tags/{tag}" for tag in (f"{package}-v{version}", f"v{version}", version)]
    folder = find_site_packages(context, base, package)
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


def find_site_packages(context: ProjectContext, base: CommitBase, package: str) -> Path | None:
    """Return the folder with the installed package, None if it is not installed."""
    python = provision(base.planned.cell, lock=base.lock, cache=context.cache).python
    folders = [Path(base.planned.overlay)] if base.planned.overlay else []
    folders += python.parent.parent.glob("lib/python*/site-packages")
    name = package.replace("-", "_")
    installed = (folder for folder in folders if [*folder.glob(f"{name}-*.dist-info")])
    return next(installed, None)
