"""`conformance solve`: the newest versions of libraries that were tested together."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from conformance.app.ecosystem.cell import CellTester
from conformance.app.ecosystem.records import open_results, open_sets
from conformance.app.ecosystem.run import load_ecosystem
from conformance.app.ecosystem.sources import LibrarySources
from conformance.cells.cell import Cell
from conformance.cells.lock_resolution import resolve_bounds
from conformance.cells.resolver import explain_refusal
from conformance.cells.selectors import find_python, resolve_selector
from conformance.cells.uvtool import NoSolutionError, run_uv
from conformance.ecosystem.outcome import LibraryOutcome
from conformance.ecosystem.solution import (
    LATEST,
    CandidateSet,
    SetRecord,
    describe_set,
    list_candidates,
    render_constraints,
    render_group,
)
from conformance.errors import InfrastructureError
from conformance.scratch import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from conformance.app.context import ProjectContext
    from conformance.ecosystem.library import Library

MOST_TESTS: Final = 8
"""Sets that one command tests."""
CONSTRAINTS, PYLOCK, GROUP = "constraints", "pylock", "uv-group"
FORMATS: Final = (CONSTRAINTS, PYLOCK, GROUP)


@dataclass(kw_only=True)
class Solver:
    """Searches for versions of libraries that work together.

    Attributes:
        context: The project.
        libraries: The libraries.
        releases: Admitted releases of jax, ascending.
        jax: Their selector.
        say: Called with a line for each step.
        offline: Whether only recorded sets count, and nothing is resolved or tested.
        declared: The set that a plain resolver chooses, None if it finds none or was not asked.
    """

    context: ProjectContext
    libraries: tuple[Library, ...]
    releases: tuple[str, ...]
    jax: str
    say: Callable[[str], None]
    offline: bool = False
    declared: SetRecord | None = None
    _known: dict[object, SetRecord] = field(default_factory=dict)
    _tests: int = 0

    def solve(self) -> SetRecord | None:
        """Return the newest set that works, None if there is none.

        The set that declared requirements admit comes first: if it works, no other is newer.

        Raises:
            UsageError: If a record is malformed.
            InfrastructureError: If the index does not answer, the disk refuses, or a set that
                may be the answer cannot be tested.
        """
        sets = open_sets(self.context)
        self._known = {
            key: record for key, record in sets.load().items() if self._is_current(record)
        }
        found = self._find()
        if self._tests:
            sets.sort()
        return found

    def _find(self) -> SetRecord | None:
        if not self.offline and (declared := self._resolve_declared()) is not None:
            self.declared = self._get_record(declared)
            if self.declared is not None and self.declared.outcome is LibraryOutcome.OK:
                return self.declared
        records = open_results(self.context).load().values()
        names = [library.name for library in self.libraries]
        for candidate in list_candidates(records, names, self.releases):
            record = self._get_record(candidate)
            if record is not None and record.outcome is LibraryOutcome.OK:
                return record
        return None

    def _is_current(self, record: SetRecord) -> bool:
        """Return whether a record is of the present definitions."""
        present = {library.name: library.hash for library in self.libraries}
        return record.definitions == present

    def _resolve_declared(self) -> CandidateSet | None:
        """Return the set that a plain resolver chooses for the requirements, if any."""
        names = [library.name for library in self.libraries]
        newest = self.releases[-1]
        try:
            pins = resolve_bounds(
                self._make_cell(newest), replace(self.context.releases, packages=()), names,
                work=self.context.cache, jax=_format_specifier(self.jax, self.releases),
            )  # fmt: skip
        except NoSolutionError as error:
            self.say(f"declared requirements have no solution: {explain_refusal(error)}")
            return None
        return CandidateSet(
            jax=pins["jax"].version, deps=LATEST,
            versions={name: pins[name].version for name in names},
        )  # fmt: skip

    def _make_cell(self, release: str) -> Cell:
        python = find_python(release, self.context.releases)
        return Cell(release=release, python=python, devices=1, deps=LATEST)

    def _get_record(self, candidate: CandidateSet) -> SetRecord | None:
        """Return the record of a set, which is tested unless it was before or may not be."""
        known = self._known.get(candidate.key)
        if known is not None:
            self.say(f"{describe_set(known)}: {known.outcome}, tested on {known.tested}")
            return known
        if self.offline or self._tests >= MOST_TESTS:
            return None
        self._tests += 1
        self.say(f"{describe_set(candidate)}: not tested together yet, testing now")
        record = self._test(candidate)
        if record.outcome is LibraryOutcome.UNKNOWN:
            raise InfrastructureError(
                f"{describe_set(candidate)}: cannot be tested, and it may be the answer: "
                f"{record.reason}"
            )
        open_sets(self.context).append(record)
        self._known[record.key] = record
        reason = record.failures[0].error if record.failures else record.reason
        self.say(f"{record.outcome}{f': {reason}' if reason else ''}")
        return record

    def _test(self, candidate: CandidateSet) -> SetRecord:
        """Install, import and test the libraries of a set in one environment."""
        cell = replace(
            self._make_cell(candidate.jax), deps=candidate.deps,
            pins=tuple(f"{name}=={version}" for name, version in candidate.versions.items()),
        )  # fmt: skip
        cache = self.context.cache
        with temporary_folder("bytecode", cache) as bytecode:
            tester = CellTester(
                context=self.context, sources=LibrarySources(cache), bytecode=bytecode
            )
            result = tester.test(cell, self.libraries)
        works = result.outcome is LibraryOutcome.OK
        return SetRecord(
            jax=candidate.jax, deps=candidate.deps, versions=dict(candidate.versions),
            definitions={library.name: library.hash for library in self.libraries},
            outcome=result.outcome, python=cell.python, reason=result.reason,
            tests=result.tests, failures=result.failures,
            packages=dict(result.packages or {}) if works else {},
            tested=datetime.now(tz=UTC).date().isoformat(),
        )  # fmt: skip


def prepare_solver(
    context: ProjectContext, names: Sequence[str], jax: str, *,
    offline: bool, say: Callable[[str], None],
) -> Solver:  # fmt: skip
    """Look up libraries and releases.

    Args:
        context: The project.
        names: Names of the libraries.
        jax: Selector of the admitted releases.
        offline: Whether only recorded sets count.
        say: Called with a line for each step.

    Raises:
        UsageError: If no library has a name, or the selector is wrong.
    """
    libraries = load_ecosystem(context, names)
    return Solver(
        context=context, libraries=libraries, jax=jax, offline=offline, say=say,
        releases=resolve_selector(jax, context.releases),
    )  # fmt: skip


def _format_specifier(jax: str, releases: Sequence[str]) -> str:
    """Return a selector of releases as a resolver reads it: `latest` is a version."""
    return f"=={releases[0]}" if len(releases) == 1 else jax


def render_solution(context: ProjectContext, record: SetRecord, form: str) -> str:
    """Return a set in a format of `FORMATS`.

    Args:
        context: The project.
        record: A set that works.
        form: The format.

    Raises:
        InfrastructureError: If the index does not answer for a pylock.toml.
    """
    if form == CONSTRAINTS:
        return render_constraints(record)
    if form == GROUP:
        return render_group(record)
    names = ["jax", *record.versions]
    with temporary_folder("solve") as scratch:
        file = Path(scratch, "constraints.txt")
        file.write_text(render_constraints(record), encoding="utf-8")
        how = ["--constraint", str(file), "--python-version", record.python, "--no-header"]
        return run_uv(
            ["pip", "compile", "-", *how, "--only-binary", ":all:", "--format", "pylock.toml"],
            cwd=context.cache, stdin="\n".join(names) + "\n",
        )  # fmt: skip


def make_solution_json(solver: Solver, record: SetRecord | None) -> dict[str, Any]:
    """Return the answer as JSON data.

    Args:
        solver: The solver, with what declared requirements admit.
        record: The set that works, None if there is none.
    """
    return {
        "libraries": [library.name for library in solver.libraries],
        "jax": solver.jax,
        "solution": None if record is None else msgspec.to_builtins(record),
        "declared": None if solver.declared is None else msgspec.to_builtins(solver.declared),
    }
