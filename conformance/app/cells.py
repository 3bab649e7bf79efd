"""The cells of a project: what each consists of, new releases, and missing locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.app.context import RELEASES
from conformance.cells.index import Refreshed, refresh_releases
from conformance.cells.lock import store_lock
from conformance.cells.locks import find_lock
from conformance.cells.provision import is_provisioned, provision
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from conformance.app.context import ProjectContext
    from conformance.engine.job import PlannedCell
    from conformance.engine.prepare import Preparation


def cell_row(
    context: ProjectContext, planned: PlannedCell, preparation: Preparation
) -> dict[str, Any]:
    """Return what a cell consists of, as `--json` has it.

    Args:
        context: The project.
        planned: The cell.
        preparation: It is one of these.
    """
    lock = preparation.locks.get(planned.cell.id)
    return {
        "cell": planned.cell.id,
        "jax": planned.release,
        "lock": planned.lock_hash,
        "versions": planned.versions,
        "provisioned": lock is not None and is_provisioned(planned.cell, lock, context.cache),
        "failure": planned.failure or planned.missing,
    }


def provision_cells(
    context: ProjectContext, preparation: Preparation
) -> Iterator[tuple[str, bool]]:
    """Make the environments of cells.

    Args:
        context: The project.
        preparation: The cells and their locks.

    Yields:
        A line for each cell, and whether the cell failed.

    Raises:
        InfrastructureError: If an environment cannot be made.
    """
    for planned in preparation.cells:
        if planned.failure:
            yield f"{planned.cell.id}: {planned.failure}", True
        elif planned.missing:
            yield f"{planned.cell.id}: not made: {planned.missing}", False
        else:
            lock = preparation.locks[planned.cell.id]
            made = provision(planned.cell, lock=lock, cache=context.cache)
            yield f"{planned.cell.id}: {made.python}", False
    for exclusion in preparation.exclusions:
        yield f"excluded {exclusion.cell}: {exclusion.reason}", False


def refresh_table(context: ProjectContext) -> Refreshed:
    """Look for new releases in the package index, and write the table of releases.

    Args:
        context: The project.

    Raises:
        UsageError: If the project cannot be written to.
        InfrastructureError: If the index does not answer, or the disk refuses.
    """
    _must_be_writable(context, "the table of releases")
    return refresh_releases(context.project.matrices / RELEASES)


def lock_cells(
    context: ProjectContext, name: str | None, selectors: Sequence[str]
) -> Iterator[str]:
    """Resolve the locks that are missing, and store them in the project.

    Args:
        context: The project.
        name: Matrix of the cells, None for the default.
        selectors: Selectors of the cells, see `ProjectContext.cells`.

    Yields:
        A line for each lock that is stored, and for each cell that can have none.

    Raises:
        UsageError: If the project cannot be written to.
        InfrastructureError: If the index does not answer, or the disk refuses.
    """
    _must_be_writable(context, "locks")
    folder = context.project.matrices / "locks"
    for cell in context.cells(name, selectors)[0]:
        # What is committed stays; what is not is resolved, or taken from the cache.
        try:
            lock = find_lock(
                cell, context.releases, folders=(context.project.matrices,), cache=context.cache
            )
        except UsageError as error:  # it has none; the next one may
            yield f"excluded {cell.id}: {str(error).removeprefix(f'{cell.id}: ')}"
            continue
        if lock.path.parent != folder and cell.interpreter is None:
            yield f"locked {store_lock(lock, folder).path.stem}"


def _must_be_writable(context: ProjectContext, what: str) -> None:
    if not context.project.writable:
        raise UsageError(
            f"{context.project.matrices}: {what} of an installed package cannot be changed; "
            "do it in a checkout"
        )
