"""The topologies that can be compiled for, and what the plugin of a cell says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from conformance.app.session import Session
from conformance.cells.cell import Cell
from conformance.cells.locks import find_lock
from conformance.cells.platform.gpus import gpus
from conformance.cells.platform.platform import get_platform
from conformance.cells.platform.tpus import GENERATIONS
from conformance.cells.provision import is_provisioned
from conformance.engine.asking import ask_plugin
from conformance.engine.checking import UnsupportedCellError
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext


ONE_HOST = "1x1x4"
"""The topology that GPUs are listed and asked for with: four on one host."""


def _tpus() -> list[dict[str, Any]]:
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
        for generation in GENERATIONS.values()
    ]


def _gpus() -> list[dict[str, Any]]:
    return [
        {
            "kind": "cuda",
            "name": gpu.name,
            "platform": f"cuda:{gpu.name}:{ONE_HOST}",
            "description": gpu.description,
            "memory": gpu.memory,
        }
        for gpu in gpus().values()
    ]


def _chosen(context: ProjectContext, selectors: Sequence[str]) -> Cell:
    cells, _ = context.cells(None, selectors)
    if len(cells) != 1 or not cells[0].place.compile_only:
        raise UsageError(
            f"--topologies asks the plugin of one compile-only cell, got {', '.join(selectors)}; "
            f"expected e.g. --cell jax{context.releases.newest.version}-tpu:v5e:2x2"
        )
    return cells[0]


def _newest_provisioned(context: ProjectContext) -> Cell | None:
    for release in reversed(context.releases.rows):
        python = context.releases.python_for(release.version)
        cell = Cell(release=release.version, python=python, platform="tpu:v5e:2x2")
        # Releases without a lock would be resolved over the network, only to be passed over.
        if not any(_has_lock(folder, cell) for folder in (*context.matrix_folders, context.cache)):
            continue
        lock = find_lock(
            cell, context.releases, folders=context.matrix_folders, cache=context.cache
        )
        if is_provisioned(cell, lock, context.cache):
            return cell
    return None


def _has_lock(folder: Path, cell: Cell) -> bool:
    return (folder / "locks" / f"{cell.env_id}.txt").is_file()


def _asked(
    context: ProjectContext, cell: Cell, names: Sequence[str]
) -> Mapping[str, Mapping[str, Any]]:
    preparation = Session(context=context).prepare([cell])
    for exclusion in preparation.exclusions:
        raise UsageError(exclusion.reason)
    (planned,) = preparation.cells
    try:
        worker = Session(context=context).opener(preparation.locks)(planned)
    except UnsupportedCellError as error:
        raise UsageError(f"{cell.id}: {error}") from error
    try:
        return ask_plugin(worker, planned, names)
    finally:
        worker.close()


def topologies(
    context: ProjectContext, selectors: Sequence[str]
) -> tuple[list[dict[str, Any]], str]:
    """Return the compile-only platforms with what a plugin says of them, and the cell asked.

    Args:
        context: The project.
        selectors: The cell whose plugin is asked; with none, the newest release whose TPU
            environment is there, or nothing is asked.

    Raises:
        UsageError: If that is not one compile-only cell, or it cannot be had.
        InfrastructureError: If the plugin does not answer.
    """
    rows = [*_tpus(), *_gpus()]
    cell = _chosen(context, selectors) if selectors else _newest_provisioned(context)
    if cell is None:
        return rows, ""
    names = [row["platform"] for row in rows if row["kind"] == cell.place.kind]
    answers = _asked(context, cell, names)
    return [row | {"answer": answers.get(row["platform"])} for row in rows], cell.id
