"""Compile-only platforms: the TPU and GPU topologies that programs can be compiled for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from conformance.app.session import Session
from conformance.cells.cell import Cell
from conformance.cells.lock_resolution import find_lock
from conformance.cells.platforms import NO_ROCM, TPU_GENERATIONS, get_platform, load_gpus
from conformance.cells.provision import is_provisioned
from conformance.engine.worker_probes import UnsupportedCellError, query_topologies
from conformance.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.app.context import ProjectContext

ONE_HOST: Final = "1x1x4"
"""The topology that GPUs are listed and asked for with: four on one host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topologies:
    """The compile-only platforms.

    Attributes:
        rows: A mapping for each, with the answer of a plugin where one was asked.
        asked: The cell whose plugin was asked, empty if there is none.
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
            line = Text(f"{row['kind']}:{row['name']}".ljust(16)).append(_describe(row))
            if answer := row.get("answer"):
                said = answer.get("refused") or f"known as {answer['kind']!r}"
                line.append(f"  {said}", "bright_black")
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
    """List the compile-only platforms, and what the plugin of a cell answers about its kind.

    Args:
        context: The project: releases, matrices and cache.
        selectors: The cell whose plugin is asked; if empty, the newest release whose TPU
            environment exists, or none.

    Raises:
        UsageError: If that is not one compile-only cell, or it cannot be had.
        InfrastructureError: If the plugin does not answer.
    """
    rows = [*_list_tpus(), *_list_gpus()]
    cell = _select_cell(context, selectors) if selectors else _newest_provisioned(context)
    if cell is None:
        return Topologies(rows=rows, asked="")
    names = [row["platform"] for row in rows if row["kind"] == cell.place.kind]
    answers = _ask_plugin_of(context, cell, names)
    rows = [row | {"answer": answers.get(row["platform"])} for row in rows]
    return Topologies(rows=rows, asked=cell.id)


def _list_tpus() -> list[dict[str, Any]]:
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
    cells, _ = context.cells(None, selectors)
    if len(cells) != 1 or not cells[0].place.compile_only:
        raise UsageError(
            f"--topologies asks the plugin of one compile-only cell, got {', '.join(selectors)}; "
            f"expected e.g. --cell jax{context.releases.newest.version}-tpu:v5e:2x2"
        )
    return cells[0]


def _newest_provisioned(context: ProjectContext) -> Cell | None:
    for release in reversed(context.releases.rows):
        python = context.releases.find_python(release.version)
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


def _ask_plugin_of(
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
        return query_topologies(worker, planned, names)
    finally:
        worker.close()


def _describe(row: Mapping[str, Any]) -> str:
    if row["kind"] == "tpu":
        return "  ".join(f"{layout} ({count})" for layout, count in row["topologies"].items())
    return f"{row['description']}, {row['memory'] / 2**30:.0f} GiB"
