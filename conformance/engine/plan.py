"""The plan of a run: its jobs in order, and its exclusions with their reasons. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from conformance.cells.releases import is_nightly
from conformance.corpus.python_source import STANDARD_LIBRARY
from conformance.engine.job import Job, PlannedCell
from conformance.model.case import is_on
from conformance.model.ranges import in_range
from conformance.model.run import Exclusion
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    from conformance.cells.cell import Cell
    from conformance.model.case import Case
    from conformance.model.record import ErrorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The jobs of a run in order, its exclusions, and its cells."""

    jobs: tuple[Job, ...]
    exclusions: tuple[Exclusion, ...]
    cells: tuple[PlannedCell, ...]


def make_plan(
    cases: Sequence[Case], cells: Sequence[PlannedCell], exclusions: Iterable[Exclusion] = ()
) -> Plan:
    """Return the jobs of cases in cells.

    Args:
        cases: Selected cases.
        cells: Planned cells, also those that cannot be provided.
        exclusions: Exclusions of whole cells and of the matrix.

    Returns:
        Jobs by cell and then by case, and an exclusion for every other pair.
    """
    jobs: list[Job] = []
    left_out = list(exclusions)
    # By cell: consecutive jobs share a worker, and a shard of the plan has few cells.
    for planned in cells:
        for case in cases:
            reason = find_exclusion_reason(case, planned)
            if reason:
                left_out.append(Exclusion(case=case.id, cell=planned.cell.id, reason=reason))
            else:
                jobs.append(Job(case=case, planned=planned))
    return Plan(jobs=tuple(jobs), exclusions=tuple(left_out), cells=tuple(cells))


def find_exclusion_reason(case: Case, planned: PlannedCell) -> str:
    """Return why a case cannot run in a cell, in terms of its metadata; empty if it can.

    Args:
        case: Case with its requirements.
        planned: Cell with its platform and versions.
    """
    if misplaced := _find_misplacement(case, planned.cell):
        return misplaced
    # The packages of such a cell are unknown, except for its release.
    unknown = bool(planned.failure or planned.missing)
    known = not unknown or (planned.cell.interpreter is None and not planned.cell.is_unresolved)
    if known and not in_range(planned.release, case.releases):
        return f"applies to jax{case.releases}, the cell has {planned.release}"
    return "" if unknown else _find_missing_requirement(case.requires, planned)


def list_possible_jobs(cases: Sequence[Case], cells: Iterable[Cell]) -> tuple[Job, ...]:
    """Return the jobs that a plan may have, found without locks: the same on every host.

    Args:
        cases: Selected cases.
        cells: The cells, unresolved.

    Returns:
        Jobs by cell and then by case, a superset of those of `make_plan`.
    """
    jobs = []
    for cell in cells:
        # Runners split these jobs into shards before any of them has resolved a lock.
        planned = PlannedCell(cell=cell, versions={}, lock_hash="", cell_hash="")
        # Hosts may not agree on the release of a nightly, e.g. without network.
        exact = cell.interpreter is None and not (cell.is_unresolved or is_nightly(cell.release))
        jobs += [
            Job(case=case, planned=planned)
            for case in cases
            if not _find_misplacement(case, cell)
            and (not exact or in_range(cell.release, case.releases))
        ]
    return tuple(jobs)


def _find_misplacement(case: Case, cell: Cell) -> str:
    """Return why a case cannot run on a cell's platform, empty if it can."""
    named = any(is_on(cell.platform, platform) for platform in case.platforms)
    if case.platforms and not named:
        return f"runs on {', '.join(case.platforms)}, the cell is {cell.platform}"
    if case.kind != "program" and not named and cell.place.compile_only:
        return f"is a {case.kind}, which runs; for {cell.platform} programs are compiled only"
    processes = cell.place.processes
    # A case that names `cpu` means one process; `cpu-mp2` must be named to run in two.
    for_ranks = any(name != "cpu" and is_on(cell.platform, name) for name in case.platforms)
    if case.kind != "program" and processes > 1 and not for_ranks:
        return f"is a {case.kind}, written for one process; {cell.platform} has {processes}"
    if case.devices > cell.devices:
        return f"needs {case.devices} devices, the cell has {cell.devices}"
    if case.devices % processes:
        needs = plural(case.devices, "device")
        return f"needs {needs}, which {processes} processes cannot share evenly"
    return ""


def _find_missing_requirement(requires: Iterable[str], planned: PlannedCell) -> str:
    for text in requires:
        requirement = Requirement(text)
        # The versions of a cell are by normalised name.
        version = planned.versions.get(requirement.name.lower().replace("_", "-"))
        if version is None:
            return f"requires {text}, the cell has none"
        if not in_range(version, str(requirement.specifier)):
            return f"requires {text}, the cell has {version}"
    return ""


_MISSING: Final = re.compile(r"No module named '([A-Za-z_]\w*)'")
"""Python's message about a top-level module; a dotted name belongs to an installed package."""


def find_missing_dependency(
    error: ErrorInfo, installed: Collection[str], file: Path, subject: str
) -> str:
    """Return a message about a package that a program imports and its cell lacks, else nothing.

    Modules of the standard library, of installed packages and next to the program do not count: a
    release may be the reason that these cannot be imported.

    Args:
        error: Error of the program.
        installed: Packages of the cell.
        file: File of the program.
        subject: Description of the program, e.g. `the suite`.
    """
    found = _MISSING.match(error.message)
    if error.type != "ModuleNotFoundError" or found is None:
        return ""
    name = found[1]
    places = [place for folder in file.absolute().parents for place in (folder, folder / "src")]
    # A folder that merely has the name, e.g. a clone, provides nothing.
    modules = (f"{name}.py", f"{name}/__init__.py")
    is_local = any((place / module).is_file() for place in places for module in modules)
    if is_local or str(canonicalize_name(name)) in installed or name in STANDARD_LIBRARY:
        return ""
    return (
        f"{subject} imports {name!r}, and the cell has no package of that name: name the package "
        f"that provides it, e.g. --with {name}"
    )
