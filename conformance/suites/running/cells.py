"""Where the sessions of a cell run: its environment, what lies beside it, and what it is."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.cells.environment_locks import hold_environment
from conformance.cells.provision import environment_folder, provision
from conformance.engine.environment import make_option_variables, make_worker_environment
from conformance.engine.preparation import find_identity_mismatch
from conformance.engine.worker_probes import UnsupportedCellError
from conformance.errors import ConformanceError, InfrastructureError
from conformance.files import disk_error
from conformance.suites.catalogue.claims import Claims, claimed_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell
    from conformance.suites.suite import Suite

HYPOTHESIS: Final = "HYPOTHESIS_STORAGE_DIRECTORY"
"""Variable that keeps out of a suite's own folders what Hypothesis writes."""

BYTECODE: Final = ".bytecode"
"""Folder of bytecode, in that of the packages beside a cell's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidedCell:
    """An environment that is ready.

    Attributes:
        python: Its interpreter.
        variables: Environment variables of what runs there.
    """

    python: Path
    variables: Mapping[str, str]


class SuiteCells:
    """Provides the environments of cells.

    Args:
        locks: Lock of each cell, by cell id; may grow.
        cache: Cache folder.
        suite: The suite that runs there; its variables count over the caller's and the cell's.
        outer: Environment variables of the caller.
    """

    def __init__(
        self,
        locks: Mapping[str, Lock],
        cache: Path,
        suite: Suite,
        outer: Mapping[str, str] = os.environ,
    ) -> None:
        self._locks, self._cache, self._suite, self._outer = locks, cache, suite, outer
        self._claims = Claims(cache)
        self._claimed: dict[str, str] = {}

    @contextmanager
    def provided(self, planned: PlannedCell) -> Iterator[ProvidedCell]:
        """Provide a cell's environment, and hold it.

        Args:
            planned: The cell.

        Yields:
            Where it is.

        Raises:
            InfrastructureError: If it cannot be provided.
            UnsupportedCellError: If this host cannot serve it, or the suite is not about it.
        """
        if planned.failure:
            raise InfrastructureError(planned.failure)
        if planned.missing:
            raise UnsupportedCellError(planned.missing)
        cell, lock = planned.cell, self._locks[planned.cell.id]
        folder = environment_folder(cell, lock, self._cache)
        try:
            with nullcontext() if cell.interpreter is not None else hold_environment(folder):
                environment = provision(cell, lock=lock, cache=self._cache)
                place = ProvidedCell(python=environment.python, variables=self._variables(planned))
                yield self._held_against(planned, place)
        except OSError as error:
            raise disk_error(folder, error) from error

    def refusal(self, planned: PlannedCell) -> str:
        """Return why a cell is not held against the version of the standard that is asked for.

        Args:
            planned: The cell, which can be provided.

        Returns:
            The reason; empty where it is, also where that cannot be told now.
        """
        standards = self._suite.standards
        if standards is None or standards.asked not in standards.versions:
            return ""  # a cell is held against what it claims
        try:
            with self.provided(planned):
                return ""
        except UnsupportedCellError as error:
            return str(error)
        except ConformanceError:
            return ""  # what stands in the way is told of the tests

    def _variables(self, planned: PlannedCell) -> dict[str, str]:
        cell = planned.cell
        variables = make_worker_environment(
            self._outer, cell.place.environment,
            keep_python_path=cell.interpreter is not None, passed=planned.passed,
        )  # fmt: skip
        path = filter(None, [planned.overlay, variables.get("PYTHONPATH")])
        beside = {
            "PYTHONPATH": os.pathsep.join(path),
            **_bytecode(planned),
            HYPOTHESIS: str(self._cache / "hypothesis"),
        }
        return {**variables, **make_option_variables(planned), **self._suite.environment, **beside}

    def _held_against(self, planned: PlannedCell, place: ProvidedCell) -> ProvidedCell:
        """Return a place that knows which version of the suite's standard counts there."""
        standards = self._suite.standards
        if standards is None:
            return place
        claimed = self._claimed_by(planned, place, standards.claim)
        if reason := standards.refusal(claimed):
            raise UnsupportedCellError(reason)
        version = {standards.variable: standards.of(claimed)}
        return ProvidedCell(python=place.python, variables={**place.variables, **version})

    def _claimed_by(self, planned: PlannedCell, place: ProvidedCell, claim: str) -> str:
        """Return what a cell claims; what an environment of the user's does may change."""
        known = "" if planned.cell.interpreter is not None else planned.cell_hash
        claimed = self._claimed.get(planned.cell.id, self._claims.known(known, claim))
        if claimed is None:
            claimed = claimed_in(place.python, place.variables, claim)
            self._claims.keep(known, claim, claimed)
        self._claimed[planned.cell.id] = claimed
        return claimed


def _bytecode(planned: PlannedCell) -> dict[str, str]:
    """Return the variables that keep bytecode out of a suite's own folders.

    Without any, each session would compile all that it imports.
    """
    if planned.overlay:
        return {"PYTHONPYCACHEPREFIX": os.path.join(planned.overlay, BYTECODE)}  # noqa: PTH118 - a text
    return {"PYTHONDONTWRITEBYTECODE": "1"}


def check_identity(planned: PlannedCell, versions: Mapping[str, str]) -> None:
    """Refuse what is not the cell.

    Args:
        planned: The cell.
        versions: Versions of packages as they are found there.

    Raises:
        InfrastructureError: If a package has another version than the cell.
    """
    if wrong := find_identity_mismatch(planned, versions):
        raise InfrastructureError(f"{planned.cell.id}: {wrong.replace('worker', 'session')}")
