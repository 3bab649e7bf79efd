"""Matrices: their cells as rows, the environments and locks of these, the table of releases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from conformance.app.context import RELEASES
from conformance.app.notes import print_note
from conformance.cells.lock import store_lock
from conformance.cells.lock_resolution import find_lock
from conformance.cells.provision import is_provisioned, provision
from conformance.cells.release_index import refresh_releases
from conformance.errors import UsageError
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.app.context import ProjectContext
    from conformance.cells.cell import Cell
    from conformance.cells.release_index import ReleaseUpdate
    from conformance.engine.preparation import Preparation
    from conformance.model.run import Exclusion

PACKAGES: Final = ("jaxlib", "numpy", "flax")
"""Packages whose versions are shown with a cell."""


def cell_rows(context: ProjectContext, preparation: Preparation) -> list[dict[str, Any]]:
    """Return the cells of a matrix as JSON has them.

    Args:
        context: The project.
        preparation: The cells with their locks.
    """
    locks = preparation.locks
    return [
        {
            "cell": planned.cell.id,
            "jax": planned.release,
            "lock": planned.lock_hash,
            "versions": planned.versions,
            "provisioned": planned.cell.id in locks
            and is_provisioned(planned.cell, locks[planned.cell.id], context.cache),
            "failure": planned.failure or planned.missing,
        }
        for planned in preparation.cells
    ]


def cell_lines(
    rows: Sequence[Mapping[str, Any]], exclusions: Sequence[Exclusion]
) -> Iterator[Text]:
    """Yield the cells of a matrix in lines.

    Args:
        rows: See `cell_rows`.
        exclusions: The cells that are left out.
    """
    for row in rows:
        yield Text(row["cell"]).append(f"  {_describe_row(row)}", "bright_black")
    for exclusion in exclusions:
        yield Text(f"excluded {exclusion.cell}: {exclusion.reason}")
    yield Text(f"{plural(len(rows), 'cell')}, {len(exclusions)} excluded")


def provision_cells(context: ProjectContext, preparation: Preparation) -> Iterator[str]:
    """Make the environments of cells, and yield a line for each; failures are notes.

    Args:
        context: The project.
        preparation: The cells with their locks.

    Raises:
        InfrastructureError: If an environment cannot be made.
    """
    for planned in preparation.cells:
        if planned.failure:
            print_note(f"{planned.cell.id}: {planned.failure}")
        elif planned.missing:
            yield f"{planned.cell.id}: not made: {planned.missing}"
        else:
            lock = preparation.locks[planned.cell.id]
            made = provision(planned.cell, lock=lock, cache=context.cache)
            yield f"{planned.cell.id}: {made.python}"
    for exclusion in preparation.exclusions:
        yield f"excluded {exclusion.cell}: {exclusion.reason}"


def lock_cells(context: ProjectContext, cells: Sequence[Cell]) -> Iterator[str]:
    """Resolve the locks that cells lack, store them in the project, and yield a line for each.

    Args:
        context: The project.
        cells: The cells.

    Raises:
        UsageError: If the matrices are data of an installed package.
        InfrastructureError: If the package index does not answer, or the disk refuses.
    """
    _check_matrices_writable(context, "locks")
    folder = context.project.matrices / "locks"
    for cell in cells:
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


def refresh_release_table(context: ProjectContext) -> ReleaseUpdate:
    """Bring the project's table of releases up to date with the package index.

    Args:
        context: The project.

    Raises:
        UsageError: If the table is data of an installed package.
        InfrastructureError: If the package index does not answer, or the disk refuses.
    """
    _check_matrices_writable(context, "the table of releases")
    return refresh_releases(context.project.matrices / RELEASES)


def _describe_row(row: Mapping[str, Any]) -> str:
    if row["failure"]:
        return str(row["failure"])
    versions = row["versions"]
    known = [f"{name} {versions[name]}" for name in PACKAGES if name in versions]
    return ", ".join([*known, "provisioned" if row["provisioned"] else "not provisioned yet"])


def _check_matrices_writable(context: ProjectContext, what: str) -> None:
    if not context.project.writable:
        raise UsageError(
            f"{context.project.matrices}: {what} of an installed package cannot be changed; "
            "do it in a checkout"
        )
