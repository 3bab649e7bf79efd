"""Matrices: their cells, environments and locks, the table of releases, and the topologies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rich.text import Text

from conformance.app.context import RELEASES
from conformance.app.output_files import print_note
from conformance.app.session import Session
from conformance.cells.cell import Cell
from conformance.cells.lock import store_lock
from conformance.cells.lock_resolution import find_lock
from conformance.cells.platforms import NO_ROCM, TPU_GENERATIONS, get_platform, load_gpus
from conformance.cells.provision import is_provisioned, provision
from conformance.cells.release_index import refresh_releases
from conformance.engine.workers.probes import UnsupportedCellError, query_topologies
from conformance.errors import UsageError
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.cells.release_index import ReleaseUpdate
    from conformance.engine.workers.preparation import Preparation
    from conformance.model.run import Exclusion


PACKAGES: Final = ("jaxlib", "numpy", "flax")
"""Packages whose versions are shown with a cell."""


class CellStep(NamedTuple):
    """The result of locking or provisioning a cell.

    Attributes:
        cell: Id of the cell, or name of the lock.
        result: `locked`, `provisioned`, `excluded`, or `not made` for lack of a Python.
        detail: The path of the Python, or the reason.
    """

    cell: str
    result: str
    detail: str = ""

    @property
    def line(self) -> str:
        """The result in a line."""
        if self.result in {"locked", "excluded"}:
            return f"{self.result} {self.cell}" + (f": {self.detail}" if self.detail else "")
        made = "" if self.result == "provisioned" else f"{self.result}: "
        return f"{self.cell}: {made}{self.detail}"


def list_cells(context: ProjectContext, preparation: Preparation) -> list[dict[str, Any]]:
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
            # A cell without a lock, e.g. if its index did not answer, has no environment either.
            "provisioned": planned.cell.id in locks
            and is_provisioned(planned.cell, locks[planned.cell.id], context.cache),
            "failure": planned.failure or planned.missing,
        }
        for planned in preparation.cells
    ]


def render_cells(
    rows: Sequence[Mapping[str, Any]], exclusions: Sequence[Exclusion]
) -> Iterator[Text]:
    """Yield the cells of a matrix in lines.

    Args:
        rows: See `list_cells`.
        exclusions: The cells that are left out.
    """
    for row in rows:
        yield Text(row["cell"]).append(f"  {_describe_row(row)}", "bright_black")
    for exclusion in exclusions:
        yield Text(f"excluded {exclusion.cell}: {exclusion.reason}")
    yield Text(f"{plural(len(rows), 'cell')}, {len(exclusions)} excluded")


def provision_cells(context: ProjectContext, preparation: Preparation) -> Iterator[CellStep]:
    """Create the environments of cells, and yield what was done for each.

    A cell whose packages could not be resolved is a note and is not yielded.

    Args:
        context: The project.
        preparation: The cells with their locks.

    Raises:
        InfrastructureError: If an environment cannot be installed.
    """
    for planned in preparation.cells:
        if planned.failure:
            # A note, not an error: the other environments are created, and the status is 4.
            print_note(f"{planned.cell.id}: {planned.failure}")
        elif planned.missing:
            yield CellStep(planned.cell.id, "not made", planned.missing)
        else:
            lock = preparation.locks[planned.cell.id]
            made = provision(planned.cell, lock=lock, cache=context.cache)
            yield CellStep(planned.cell.id, "provisioned", str(made.python))
    for exclusion in preparation.exclusions:
        yield CellStep(exclusion.cell, "excluded", exclusion.reason)


def lock_cells(context: ProjectContext, cells: Sequence[Cell]) -> Iterator[CellStep]:
    """Resolve the locks that cells lack, store them in the project, and yield each.

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
        # A committed lock stays unchanged; any other is taken from the cache or resolved.
        try:
            lock = find_lock(
                cell, context.releases, folders=(context.project.matrices,), cache=context.cache
            )
        except UsageError as error:
            # Without a solution for one cell, the others still get their locks.
            yield CellStep(cell.id, "excluded", str(error).removeprefix(f"{cell.id}: "))
            continue
        # The lock of an environment lists its packages on this host, which no other host has.
        if lock.path.parent != folder and cell.interpreter is None:
            yield CellStep(store_lock(lock, folder).path.stem, "locked")


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


ONE_HOST: Final = "1x1x4"
"""The topology with which GPUs are listed: four on one host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topologies:
    """The compile-only platforms.

    Attributes:
        rows: A mapping for each platform, with the answer of its plugin if that was queried.
        asked: The cell whose plugin was queried, empty for none.
    """

    rows: Sequence[Mapping[str, Any]]
    asked: str

    @property
    def data(self) -> dict[str, Any]:
        """The platforms as JSON has them."""
        return {"platforms": self.rows, "asked": self.asked, "refused": {"rocm": NO_ROCM}}

    @property
    def lines(self) -> Iterator[Text]:
        """A line for each platform, and how to name one."""
        for row in self.rows:
            line = Text(f"{row['kind']}:{row['name']}".ljust(16)).append(_describe_platform(row))
            if answer := row.get("answer"):
                words = answer.get("refused") or f"known as {answer['kind']!r}"
                line.append(f"  {words}", "bright_black")
            yield line
        yield Text(f"rocm            {NO_ROCM}")
        yield Text(
            "tpu:GENERATION:TOPOLOGY, devices in brackets; "
            "cuda:GPU:PARTITIONSxHOSTSxDEVICES, e.g. cuda:h100:1x1x4"
        )
        yield Text(
            f"asked: the plugin of {self.asked}"
            if self.asked
            else "no plugin was asked: name a cell, e.g. --cell jax0.10.2-tpu:v5e:2x2"
        )


def list_topologies(context: ProjectContext, selectors: Sequence[str]) -> Topologies:
    """List the compile-only platforms, and query the plugin of a cell about those of its kind.

    Args:
        context: The project: releases, matrices and cache.
        selectors: Selector of the cell whose plugin is queried; if empty, the cell of the newest
            release whose TPU environment exists, or none.

    Raises:
        UsageError: If it is not a single compile-only cell, or the cell cannot be provided.
        InfrastructureError: If the plugin does not answer.
    """
    rows = [*_list_tpus(), *_list_gpus()]
    cell = _select_cell(context, selectors) if selectors else _find_newest_provisioned(context)
    if cell is None:
        return Topologies(rows=rows, asked="")
    # libtpu knows TPUs alone, and the CUDA plugin GPUs: others would all be refused.
    names = [row["platform"] for row in rows if row["kind"] == cell.place.kind]
    answers = _query_plugin(context, cell, names)
    rows = [row | {"answer": answers.get(row["platform"])} for row in rows]
    return Topologies(rows=rows, asked=cell.id)


def _list_tpus() -> list[dict[str, Any]]:
    """Return a row for each TPU generation, with its topologies and their numbers of devices."""
    return [
        {
            "kind": "tpu",
            "name": generation.name,
            "platform": f"tpu:{generation.name}:{generation.examples[0]}",
            "topologies": {
                layout: get_platform(f"tpu:{generation.name}:{layout}").devices
                for layout in generation.examples
            },
        }
        for generation in TPU_GENERATIONS.values()
    ]


def _list_gpus() -> list[dict[str, Any]]:
    return [
        {
            "kind": "cuda",
            "name": gpu.name,
            "platform": f"cuda:{gpu.name}:{ONE_HOST}",
            "description": gpu.description,
            "memory": gpu.memory,
        }
        for gpu in load_gpus().values()
    ]


def _select_cell(context: ProjectContext, selectors: Sequence[str]) -> Cell:
    cells, _ = context.select_cells(None, selectors)
    if len(cells) != 1 or not cells[0].place.compile_only:
        raise UsageError(
            f"--topologies asks the plugin of one compile-only cell, got {', '.join(selectors)}; "
            f"expected e.g. --cell jax{context.releases.newest.version}-tpu:v5e:2x2"
        )
    return cells[0]


def _find_newest_provisioned(context: ProjectContext) -> Cell | None:
    # The newest libtpu knows the most generations.
    for release in reversed(context.releases.rows):
        python = context.releases.find_python(release.version)
        cell = Cell(release=release.version, python=python, platform="tpu:v5e:2x2")
        # Without a lock the release would be resolved over the network, only to be skipped.
        if not any(_has_lock(folder, cell) for folder in (*context.matrix_folders, context.cache)):
            continue
        lock = find_lock(
            cell, context.releases, folders=context.matrix_folders, cache=context.cache
        )
        if is_provisioned(cell, lock, context.cache):
            return cell
    return None


def _has_lock(folder: Path, cell: Cell) -> bool:
    """Say whether a folder of matrices, or the cache folder, has a lock of a cell in `locks/`."""
    return (folder / "locks" / f"{cell.env_id}.txt").is_file()


def _query_plugin(
    context: ProjectContext, cell: Cell, names: Sequence[str]
) -> Mapping[str, Mapping[str, Any]]:
    session = Session(context=context)
    planned, locks = session.prepare_cell(cell)
    try:
        worker = session.make_opener(locks)(planned)
    except UnsupportedCellError as error:
        raise UsageError(f"{cell.id}: {error}") from error
    try:
        return query_topologies(worker, planned, names)
    finally:
        worker.close()


def _describe_platform(row: Mapping[str, Any]) -> str:
    """Return the properties of a platform: the topologies of a TPU; a GPU's name and memory."""
    if row["kind"] == "tpu":
        return "  ".join(f"{layout} ({count})" for layout, count in row["topologies"].items())
    return f"{row['description']}, {row['memory'] / 2**30:.0f} GiB"
