"""Provides the environments that the sessions of a suite run in, cell by cell."""

from __future__ import annotations

import os
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.cells.environment_locks import hold_environment
from conformance.cells.provision import get_environment_folder, provision
from conformance.engine.workers.environment import make_option_variables, make_worker_environment
from conformance.engine.workers.preparation import find_identity_mismatch
from conformance.engine.workers.probes import UnsupportedCellError
from conformance.errors import ConformanceError, InfrastructureError
from conformance.files import disk_error
from conformance.suites.catalogue.standards import ClaimCache, read_claim

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from conformance.cells.lock import Lock
    from conformance.engine.job import PlannedCell
    from conformance.suites.suite import Suite

HYPOTHESIS: Final = "HYPOTHESIS_STORAGE_DIRECTORY"
"""Variable that keeps the files of Hypothesis out of a suite's own folders."""

BYTECODE: Final = ".bytecode"
"""Folder of bytecode within the overlay of a cell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvidedCell:
    """An environment in which sessions can start.

    Attributes:
        python: Interpreter of the environment.
        variables: Environment variables of its processes.
    """

    python: Path
    variables: Mapping[str, str]


class SuiteCells:
    """Provides the environments of cells.

    Args:
        locks: Lock of each cell, by cell id; more may be added later.
        cache: Cache folder.
        suite: The suite; its variables override the caller's and the cell's.
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
        self._claim_cache = ClaimCache(cache)
        self._claims: dict[str, str] = {}

    @contextmanager
    def provide(self, planned: PlannedCell) -> Iterator[ProvidedCell]:
        """Provide a cell's environment, and lock it against removal.

        Args:
            planned: Cell to provide.

        Yields:
            The environment.

        Raises:
            InfrastructureError: If it cannot be provided.
            UnsupportedCellError: If this host cannot serve it, or the suite does not apply to it.
        """
        if planned.failure:
            raise InfrastructureError(planned.failure)
        if planned.missing:
            raise UnsupportedCellError(planned.missing)
        cell, lock = planned.cell, self._locks[planned.cell.id]
        folder = get_environment_folder(cell, lock, self._cache)
        try:
            # Held while it is created, too: a concurrent `cache prune` must not remove it in
            # between. The environment of a `path:` cell is the user's, and is never removed.
            with nullcontext() if cell.interpreter is not None else hold_environment(folder):
                python = provision(cell, lock=lock, cache=self._cache).python
                variables = self._make_variables(planned)
                variables |= self._select_standard(planned, python, variables)
                yield ProvidedCell(python=python, variables=variables)
        except OSError as error:
            raise disk_error(folder, error) from error

    def explain_refusal(self, planned: PlannedCell) -> str:
        """Return why a cell is not held against the selected version of the standard.

        Args:
            planned: The cell, which can be provided.

        Returns:
            The reason; empty if it is, or if that is unknown.
        """
        standards = self._suite.standards
        if standards is None or standards.requested not in standards.versions:
            return ""  # a cell is held against the version that it claims
        try:
            with self.provide(planned):
                return ""
        except UnsupportedCellError as error:
            return str(error)
        except ConformanceError:
            return ""  # the tests report the error

    def _make_variables(self, planned: PlannedCell) -> dict[str, str]:
        cell = planned.cell
        variables = make_worker_environment(
            self._outer, cell.place.environment,
            keep_python_path=cell.interpreter is not None, passed=planned.passed,
        )  # fmt: skip
        path = filter(None, [planned.python_path, variables.get("PYTHONPATH")])
        # Bytecode must not be written next to the suite's modules. An overlay has a folder for it:
        # without bytecode, each session compiles everything that it imports.
        bytecode = (
            {"PYTHONPYCACHEPREFIX": f"{planned.overlay}{os.sep}{BYTECODE}"}
            if planned.overlay
            else {"PYTHONDONTWRITEBYTECODE": "1"}
        )
        return {
            **variables, **make_option_variables(planned), **self._suite.definition.environment,
            "PYTHONPATH": os.pathsep.join(path), **bytecode,
            HYPOTHESIS: str(self._cache / "hypothesis"),
        }  # fmt: skip

    def _select_standard(
        self, planned: PlannedCell, python: Path, variables: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the variable that selects the version of the suite's standard in a cell."""
        standards = self._suite.standards
        if standards is None:
            return {}
        # The user's own environment may change, and with it the version that it claims.
        cell_hash = "" if planned.cell.interpreter is not None else planned.cell_hash
        # Per run: the import of a user's own environment is not cached, and takes seconds.
        claimed = self._claims.get(planned.cell.id)
        if claimed is None:
            claimed = self._claim_cache.load(cell_hash, standards.claim)
        if claimed is None:
            claimed = read_claim(python, variables, standards.claim)
            self._claim_cache.save(cell_hash, standards.claim, claimed)
        self._claims[planned.cell.id] = claimed
        if reason := standards.explain_refusal(claimed):
            raise UnsupportedCellError(reason)
        return {standards.variable: standards.find_version(claimed)}


def check_identity(planned: PlannedCell, versions: Mapping[str, str]) -> None:
    """Check that an environment has the packages of its cell.

    Args:
        planned: Cell of the environment.
        versions: Versions of the packages in the environment.

    Raises:
        InfrastructureError: If a package has another version than the cell.
    """
    if mismatch := find_identity_mismatch(planned, versions):
        raise InfrastructureError(f"{planned.cell.id}: {mismatch.replace('worker', 'session')}")
