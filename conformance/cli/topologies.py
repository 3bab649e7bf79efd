"""`conformance matrix --topologies`: what can be compiled for, and what a plugin says of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from conformance.app.topologies import topologies
from conformance.cells.platform.platform import NO_ROCM
from conformance.cli.console import open_console
from conformance.files import readable_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from conformance.app.context import ProjectContext


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
    rows, asked = topologies(context, selectors)
    if as_json:
        data = {"platforms": rows, "asked": asked, "refused": {"rocm": NO_ROCM}}
        click.echo(readable_json(data))
    else:
        _print(open_console(), rows, asked)
    return 0


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
