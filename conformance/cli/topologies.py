"""`conformance matrix --topologies`: what can be compiled for, and what a plugin says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from conformance.app.session import Session
from conformance.cells.cell import Cell
from conformance.cells.locks import find_lock
from conformance.cells.platform.gpus import gpus
from conformance.cells.platform.platform import NO_ROCM, get_platform
from conformance.cells.platform.tpus import GENERATIONS
from conformance.cells.provision import is_provisioned
from conformance.cli.console import open_console
from conformance.engine.asking import ask_plugin
from conformance.engine.checking import UnsupportedCellError
from conformance.errors import UsageError
from conformance.files import readable_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from conformance.app.context import ProjectContext

ONE_HOST = "1x1x4"
"""The topology that GPUs are listed and asked for with: four on one host."""


def show_topologies(context: ProjectContext, selectors: Sequence[str], *, as_json: bool) -> int:
    """List the compile-only platforms, and what the plugin of a cell says of its kind.

    Args:
        context: Surroundings: releases, matrices and cache.
        selectors: The cell whose plugin is asked; with none, the newest release whose TPU
            environment is there, or nothing is asked.
        as_json: Whether to print JSON.

    Returns:
        Exit code 0.

    Raises:
        UsageError: If that is not one compile-only cell, or it cannot be had.
        InfrastructureError: If the plugin does not answer.
    """
    rows = [*_tpus(), *_gpus()]
    cell = _chosen(context, selectors) if selectors else _newest_provisioned(context)
    if cell is not None:
        names = [row["platform"] for row in rows if row["kind"] == cell.place.kind]
        answers = _asked(context, cell, names)
        rows = [row | {"answer": answers.get(row["platform"])} for row in rows]
    asked = cell.id if cell is not None else ""
    if as_json:
        data = {"platforms": rows, "asked": asked, "refused": {"rocm": NO_ROCM}}
        click.echo(readable_json(data))
    else:
        _print(open_console(), rows, asked)
    return 0


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


def _print(console: Console, rows: Sequence[Mapping[str, Any]], asked: str) -> None:
    for row in rows:
        line = Text(f"{row['kind']}:{row['name']}".ljust(16)).append(_described(row))
        if answer := row.get("answer"):
            line.append(f"  {_answered(answer)}", "bright_black")
        console.print(line, soft_wrap=True)
    console.print(f"rocm            {NO_ROCM}", soft_wrap=True)
    console.print(
        "tpu:GENERATION:TOPOLOGY, devices in brackets; "
        "cuda:GPU:PARTITIONSxHOSTSxDEVICES, e.g. cuda:h100:1x1x4",
        soft_wrap=True,
    )
    console.print(
        f"asked: the plugin of {asked}"
        if asked
        else "no plugin was asked: name a cell, e.g. --cell jax0.10.2-tpu:v5e:2x2",
        soft_wrap=True,
    )


def _described(row: Mapping[str, Any]) -> str:
    if row["kind"] == "tpu":
        return "  ".join(f"{layout} ({count})" for layout, count in row["topologies"].items())
    return f"{row['description']}, {row['memory'] / 2**30:.0f} GiB"


def _answered(answer: Mapping[str, Any]) -> str:
    return str(answer.get("refused") or f"known as {answer['kind']!r}")
