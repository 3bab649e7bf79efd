"""Cells with the sources of a package at a commit, on the other packages of a release."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.cells.cell import Cell
from conformance.cells.child_processes import CHILD_PROCESSES
from conformance.cells.provision import provision
from conformance.cells.source_commit import SHORT
from conformance.cells.source_tree import provide_sources
from conformance.engine.workers.environment import make_worker_environment
from conformance.errors import InfrastructureError
from conformance.files import describe_os_error
from conformance.search.axes import JAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.cells.lock import Lock
    from conformance.cells.repository import Repository
    from conformance.cells.source_commit import SourceCommit
    from conformance.cells.source_tree import SourcePackage
    from conformance.engine.job import PlannedCell

OLDER, NEWER = 0, 1
"""The environments of the older and of the newer release, by number."""
IMPORTS: Final = 60.0
"""Seconds that the import of a package may take."""
_MINIMUM: Final = re.compile(r"""^_minimum_jaxlib_version *= *["']([^"']+)["']""", re.MULTILINE)
_EXCEPTION: Final = re.compile(
    r"^(?:.*output: )?(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception|Exit)\b.*)$", re.MULTILINE
)
"""The line of a traceback that names the exception, whose message may have more lines."""
_OWN_VERSION: Final = re.compile(r"""^_version *= *["']([^"']+)["']""", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitCell(Cell):
    """A cell with the sources of a package at a commit.

    Its environment is that of its release.

    Attributes:
        package: The package.
        commit: First digits of the commit.
    """

    package: str
    commit: str

    def _list_options(self) -> Iterator[str]:
        # slots=True replaces the class, so that super() without arguments fails.
        yield from super(CommitCell, self)._list_options()
        yield f"commit.{self.package}.{self.commit}"


def plan_sources(
    planned: PlannedCell, package: str, name: str, sources: Path, version: str
) -> PlannedCell:
    """Return a planned cell in which the sources of a package replace the installed ones.

    Args:
        planned: The cell.
        package: The package.
        name: Name of the sources: a commit, or a release.
        sources: Folder of the sources.
        version: Version under which the package is found.
    """
    same = {f.name: getattr(planned.cell, f.name) for f in fields(Cell) if f.init}
    facts = f"{planned.cell_hash} {package} {name} {sources.name}"
    return replace(
        planned,
        cell=CommitCell(**same, package=package, commit=name[:SHORT]),
        versions={**planned.versions, package: version},
        cell_hash=hashlib.sha256(facts.encode()).hexdigest()[:16] if planned.cell_hash else "",
        sources=str(sources),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBase:
    """The environment of a release, which lends its other packages to the sources of a commit.

    Attributes:
        planned: Cell of the release.
        lock: Its lock.
        label: Name of the release.
    """

    planned: PlannedCell
    lock: Lock
    label: str


@dataclass(kw_only=True)
class CommitCells(Sequence["PlannedCell"]):
    """Planned cells of consecutive commits, each prepared when it is first used.

    A commit is tried with the packages of one release, or with those of the other if it cannot be
    imported with the first. A commit that neither can import has a cell with the reason.

    Attributes:
        repository: The repository.
        commits: The commits, oldest first.
        package: The package.
        bases: The environments of the older and of the newer release.
        cache: Cache folder.
        locks: Lock of each cell, by cell id; grows.
        order: Numbers of the environments in which a commit is tried, until one imports it.
        find_import_problem: Returns why a cell cannot import the package, empty if it can. By
            default a process imports it, which writes the bytecode that the trials use.
        bases_used: Number of the environment in which each prepared commit is tried.
    """

    repository: Repository
    commits: Sequence[SourceCommit]
    package: SourcePackage
    bases: tuple[CommitBase, CommitBase]
    cache: Path
    locks: dict[str, Lock]
    order: tuple[int, ...] = (OLDER, NEWER)
    find_import_problem: Callable[[PlannedCell], str] = field(init=False)
    bases_used: dict[int, int] = field(default_factory=dict)
    _cells: dict[int, PlannedCell] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Import commits in processes, until something else is chosen."""
        self.find_import_problem = self._import_once

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the points: the short hashes of the commits."""
        return tuple(commit.short for commit in self.commits)

    def __len__(self) -> int:
        return len(self.commits)

    def __getitem__(self, number: int) -> PlannedCell:  # type: ignore[override]  # no slices
        """Return the cell of a commit.

        Raises:
            InfrastructureError: If git fails, an environment cannot be provided, or the disk
                refuses.
        """
        if number not in self._cells:
            self._cells[number] = self._prepare_importable(number)
        return self._cells[number]

    def choose_base(self, number: int, base: int) -> None:
        """Try a commit in one environment, regardless of the order.

        Args:
            number: Number of the commit.
            base: Number of the environment.
        """
        self._cells[number], self.bases_used[number] = self.prepare_on(number, base), base

    def prepare(self, numbers: Sequence[int]) -> None:
        """Prepare the cells of some commits at the same time.

        Args:
            numbers: Numbers of the commits.
        """
        with ThreadPoolExecutor(max(len(numbers), 1)) as pool:
            list(pool.map(self.__getitem__, dict.fromkeys(numbers)))

    def _prepare_importable(self, number: int) -> PlannedCell:
        first, *others = self.order
        planned, self.bases_used[number] = self.prepare_on(number, first), first
        for base in others:
            if not planned.missing:
                break
            refused = planned.missing
            planned, self.bases_used[number] = self.prepare_on(number, base), base
            if planned.missing:
                planned = replace(planned, missing=f"{refused}; {planned.missing}")
        return planned

    def prepare_on(self, number: int, base: int) -> PlannedCell:
        """Return the cell of a commit in one environment; with a reason if it cannot be imported.

        Args:
            number: Number of the commit.
            base: Number of the environment.

        Raises:
            InfrastructureError: If git fails, the environment cannot be provided, or the disk
                refuses.
        """
        commit, end = self.commits[number], self.bases[base]
        version = self._make_version(commit, end)
        sources = provide_sources(self.repository, commit.hash, self.package, version, self.cache)
        planned = plan_sources(end.planned, self.package.name, commit.hash, sources, version)
        self.locks[planned.cell.id] = end.lock
        if planned.missing or not (problem := self._recall_import_problem(planned)):
            return planned
        return replace(planned, missing=f"with the packages of {end.label}: {problem}")

    def _recall_import_problem(self, planned: PlannedCell) -> str:
        """Return why the sources of a cell cannot be imported, empty if they can."""
        note = Path(planned.sources, f".imported-{planned.lock_hash[:16]}")
        with suppress(OSError):
            return note.read_text(encoding="utf-8")
        problem = self.find_import_problem(planned)
        shown = find_raised_line(problem)
        # Any other problem is one of the host, which may be gone the next time.
        if problem and not shown:
            raise InfrastructureError(problem)
        note.write_text(shown, encoding="utf-8")
        return shown

    def find_last_admitted(self) -> int:
        """Return the number of the last commit that accepts the packages of the older release.

        A commit of jax states the oldest jaxlib that it works with. Other packages state nothing,
        and all of their commits count.
        """
        last = len(self.commits) - 1
        installed = self.bases[OLDER].planned.versions.get("jaxlib")
        if self.package.name != JAX or installed is None:
            return last
        file = f"{self.package.folder}/version.py"
        ends = self.commits[0].hash, self.commits[-1].hash
        for commit in self.repository.list_commits(*ends, [file]):
            found = _MINIMUM.search(self.repository.read_file(commit.hash, file) or "")
            if found and Version(found[1]) > Version(installed):
                return self.commits.index(commit) - 1
        return last

    def _make_version(self, commit: SourceCommit, base: CommitBase) -> str:
        """Return the version of a commit: for jax the one that it gives itself."""
        if self.package.name != JAX:
            installed = base.planned.versions.get(self.package.name, "0")
            return f"{Version(installed).base_version}+{commit.short}"
        text = self.repository.read_file(commit.hash, f"{self.package.folder}/version.py") or ""
        found = _OWN_VERSION.search(text)
        own = Version(found[1] if found else base.planned.versions[JAX])
        # jax refuses a jaxlib that is newer than itself.
        least = Version(base.planned.versions.get("jaxlib", "0"))
        return f"{max(own, least).base_version}.dev{commit.date.replace('-', '')}+{commit.short}"

    def _import_once(self, planned: PlannedCell) -> str:
        """Import the package in a new process; see `find_import_problem`."""
        lock = self.locks[planned.cell.id]
        python = provision(planned.cell, lock=lock, cache=self.cache).python
        environment = make_worker_environment(
            os.environ, {**planned.cell.place.environment, "PYTHONPATH": planned.python_path},
            keep_python_path=False, passed=planned.passed,
        )  # fmt: skip
        try:
            done = CHILD_PROCESSES.run(
                [python, "-c", f"import {self.package.module}"],
                cwd=Path(planned.sources), env=environment, timeout=IMPORTS,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no end within {IMPORTS:g} s"
        except OSError as error:
            raise InfrastructureError(f"{python}: {describe_os_error(error)}") from error
        if done.returncode < 0:  # a property of the host, e.g. the end of its memory
            raise InfrastructureError(f"{python}: ended by signal {-done.returncode}")
        problem = done.stderr.strip() or f"exit status {done.returncode}"
        return problem if done.returncode else ""


def find_raised_line(output: str) -> str:
    """Return the exception that ended a process of Python, in a line; empty for any other end.

    Args:
        output: What it wrote last, or a message that ends with it.
    """
    found = _EXCEPTION.findall(output)
    return str(found[-1]) if found else ""
