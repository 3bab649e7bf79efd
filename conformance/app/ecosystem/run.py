"""`conformance ecosystem`: libraries on releases of JAX, with each policy for their versions."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from conformance.app.ecosystem.cell import CellResult, CellTester
from conformance.app.ecosystem.records import open_results
from conformance.app.ecosystem.sources import LibrarySources
from conformance.cells.lock_resolution import find_cut_off, resolve_bounds
from conformance.cells.resolver import explain_refusal
from conformance.cells.uvtool import NoSolutionError
from conformance.ecosystem.comparison import is_new_failure
from conformance.ecosystem.library import load_libraries, select_libraries
from conformance.ecosystem.outcome import Key, LibraryOutcome, LibraryRecord, VersionPolicy
from conformance.ecosystem.refusal import shorten_refusal
from conformance.ecosystem.solution import get_deps
from conformance.ecosystem.versions import choose_version
from conformance.errors import ConformanceError, UsageError
from conformance.model.outcome import ExitCode
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.ecosystem.library import Library


@dataclass(frozen=True, slots=True, kw_only=True)
class EcosystemOptions:
    """The options of `conformance ecosystem`.

    Attributes:
        names: Names of libraries, none for all.
        cells: Selectors of releases.
        policies: Policies by which versions are chosen, none for those of each library.
        jobs: Cells at the same time.
        fresh: Whether recorded outcomes are ignored.
        repeat: Whether tests that pass run twice, too.
        keep: Whether environments are kept.
        rotate: Number of libraries of today, 0 for all.
    """

    names: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    policies: tuple[VersionPolicy, ...] = ()
    jobs: int = 1
    fresh: bool = False
    repeat: bool = False
    keep: bool = False
    rotate: int = 0


def load_ecosystem(context: ProjectContext, names: Sequence[str] = ()) -> tuple[Library, ...]:
    """Return the libraries of a project.

    Args:
        context: The project.
        names: Names of libraries, none for all.

    Raises:
        UsageError: If a definition is wrong, or no library has a name.
    """
    folder = context.project.ecosystem
    libraries = load_libraries(folder)
    if not libraries:
        raise UsageError(f"{folder}: defines no library, expected files such as flax.toml")
    return select_libraries(libraries, names, folder)


def rotate_libraries(libraries: Sequence[Library], count: int, day: date) -> tuple[Library, ...]:
    """Return the libraries of a day: all have their turn after a while.

    Args:
        libraries: The libraries.
        count: Libraries of a day, 0 for all.
        day: The day.
    """
    if not 0 < count < len(libraries):
        return tuple(libraries)
    start = day.toordinal() * count
    return tuple(libraries[(start + number) % len(libraries)] for number in range(count))


def select_releases(context: ProjectContext, selectors: Sequence[str]) -> tuple[Cell, ...]:
    """Return the cells of releases, each with one CPU device, as a user has.

    Args:
        context: The project.
        selectors: Selectors of releases.

    Raises:
        UsageError: If a selector is wrong, or names another platform or an environment.
    """
    cells, _ = context.select_cells(None, list(selectors))
    for cell in cells:
        if cell.interpreter is not None or cell.platform != "cpu":
            raise UsageError(f"--cell {cell.selector}: expected a release, on a CPU")
    return tuple(dict.fromkeys(replace(cell, devices=1) for cell in cells))


@dataclass(kw_only=True)
class EcosystemRun:
    """Libraries that are tested on releases.

    Attributes:
        context: The project.
        libraries: The libraries.
        cells: The cells of the releases.
        options: The options.
        exit_code: Exit status, of the records so far.
    """

    context: ProjectContext
    libraries: tuple[Library, ...]
    cells: tuple[Cell, ...]
    options: EcosystemOptions
    exit_code: ExitCode = ExitCode.OK

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the libraries."""
        return tuple(library.name for library in self.libraries)

    def test(self) -> Iterator[LibraryRecord]:
        """Test every library on every release, and record the outcomes.

        Yields:
            Each new record.

        Raises:
            UsageError: If an earlier record is malformed.
            InfrastructureError: If the disk refuses.
        """
        results = open_results(self.context)
        before = results.load()
        # By release: environments of a release share their bytecode.
        tasks = [(library, cell) for cell in self.cells for library in self.libraries]
        with temporary_folder("bytecode", self.context.cache) as bytecode:
            known = {} if self.options.fresh else dict(before)
            worker = _LibraryWorker(self.context, self.options, known, bytecode)
            threads = ThreadPoolExecutor(self.options.jobs)
            futures = [threads.submit(worker.test, *task) for task in tasks]
            try:
                for future in as_completed(futures):
                    for record in future.result():
                        # Before it is shown: a record that was shown survives `kill -9`.
                        results.append(record)
                        self._judge(record, before.values())
                        before[record.key] = record
                        yield record
            finally:
                threads.shutdown(cancel_futures=True)
        results.sort()

    def _judge(self, record: LibraryRecord, earlier: Iterable[LibraryRecord]) -> None:
        if is_new_failure(record, earlier):
            self.exit_code = ExitCode.UNEXPECTED
        elif record.outcome is LibraryOutcome.UNKNOWN and self.exit_code is ExitCode.OK:
            self.exit_code = ExitCode.INFRA


def prepare_ecosystem(context: ProjectContext, options: EcosystemOptions) -> EcosystemRun:
    """Look up the libraries and the releases of a run.

    Args:
        context: The project.
        options: The options.

    Raises:
        UsageError: If a definition or a selector is wrong, or no library has a name.
    """
    libraries = load_ecosystem(context, options.names)
    today = datetime.now(tz=UTC).date()
    return EcosystemRun(
        context=context, libraries=rotate_libraries(libraries, options.rotate, today),
        cells=select_releases(context, options.cells), options=options,
    )  # fmt: skip


class _LibraryWorker:
    """Tests a library on a release with each policy.

    Args:
        context: The project.
        options: The options.
        known: Earlier records by key.
        bytecode: Folder of bytecode that environments share.
    """

    def __init__(
        self,
        context: ProjectContext,
        options: EcosystemOptions,
        known: Mapping[Any, LibraryRecord],
        bytecode: Path,
    ) -> None:
        self._context, self._options, self._known = context, options, known
        self._sources = LibrarySources(context.cache)
        self._tester = CellTester(
            context=context, sources=self._sources, bytecode=bytecode, fresh=options.fresh,
            repeat=options.repeat, keep=options.keep,
        )  # fmt: skip

    def test(self, library: Library, cell: Cell) -> list[LibraryRecord]:
        """Return the new records of a library on a release."""
        records: list[LibraryRecord] = []
        done: dict[str, LibraryRecord] = {}
        for policy in self._options.policies or library.policies:
            key = Key(library.name, cell.release, policy)
            own = replace(cell, deps=get_deps(policy))
            try:
                version, refusal = self._choose_version(library, own, policy)
            except ConformanceError as error:
                records.append(
                    _make_record(key, library, "", CellResult(
                        outcome=LibraryOutcome.UNKNOWN, reason=str(error)
                    ))
                )  # fmt: skip
                continue
            known = self._known.get(key)
            if known is not None and known.is_current(version, library.hash):
                continue
            if not version:
                records.append(_make_record(key, library, "", refusal))
                continue
            pinned = replace(own, pins=(f"{library.name}=={version}",))
            if pinned.id not in done:
                start = time.monotonic()
                result = self._tester.test(pinned, [library])
                made = _make_record(key, library, version, result)
                done[pinned.id] = msgspec.structs.replace(
                    made, cell=pinned.id, seconds=round(time.monotonic() - start, 1)
                )
            records.append(msgspec.structs.replace(done[pinned.id], policy=policy))
        return records

    def _choose_version(
        self, library: Library, cell: Cell, policy: VersionPolicy
    ) -> tuple[str, CellResult]:
        """Return the version that a policy chooses, else the result without a version.

        Raises:
            InfrastructureError: If the package index does not answer.
        """
        releases = replace(self._context.releases, packages=())
        none = CellResult(outcome=LibraryOutcome.NO_VERSION)
        if policy is VersionPolicy.BOUNDS:
            try:
                pins = resolve_bounds(cell, releases, [library.name], work=self._context.cache)
            except NoSolutionError as error:
                return "", CellResult(
                    outcome=LibraryOutcome.NOT_INSTALLABLE,
                    reason=shorten_refusal(explain_refusal(error), library.name),
                )
            return pins[library.name].version, none
        until = find_cut_off(cell, releases) if policy is VersionPolicy.RELEASE else None
        published = self._sources.find_versions(library.name)
        return choose_version(published, cell.python, until), none


def _make_record(key: Key, library: Library, version: str, result: CellResult) -> LibraryRecord:
    return LibraryRecord(
        library=key.library, jax=key.jax, policy=key.policy, version=version,
        outcome=result.outcome, definition=library.hash,
        reason=shorten_refusal(result.reason, library.name), tests=result.tests,
        failures=result.failures, flaky=result.flaky,
        tested=datetime.now(tz=UTC).date().isoformat(),
    )  # fmt: skip
