"""Shards of a run as text, as JSON, and as the job matrix of a CI service."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from conformance.report.text import sanitize
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from conformance.engine.shards import Shard
    from conformance.model.run import Exclusion

    Labels = Mapping[str, str | list[str]]

MOST = 8
"""Reasons of exclusions that are shown."""


def make_shards_json(shards: Sequence[Shard], asked: str, labels: Labels) -> list[dict[str, Any]]:
    """Return each shard with its runner and the arguments that run it.

    Args:
        shards: The shards, in order.
        asked: Arguments of `conformance run` for the whole.
        labels: Labels of a runner, by the accelerator it must have; empty for none.
    """
    count = len(shards)
    return [
        {
            "shard": f"{number}/{count}",
            "runner": labels[one.runner],
            "arguments": f"{asked} --shard {number}/{count}".lstrip(),
            "cells": list(dict.fromkeys(job.planned.cell.id for job in one.jobs)),
            "jobs": len(one.jobs),
            "seconds": round(one.seconds),  # an estimate from earlier runs
        }
        for number, one in enumerate(shards, 1)
    ]


def make_github_matrix(shards: Sequence[Shard], asked: str, labels: Labels) -> dict[str, Any]:
    """Return the job matrix of a GitHub workflow, for `strategy.matrix` by `fromJSON`.

    Args:
        shards: The shards, in order.
        asked: Arguments of `conformance run` for the whole.
        labels: Labels of a runner, by the accelerator it must have.
    """
    # GitHub limits the outputs of a job to 1 MB: lists of cells are left out.
    keys = ("shard", "runner", "arguments")
    include = []
    for number, one in enumerate(make_shards_json(shards, asked, labels), 1):
        values = {name: one[name] for name in keys}
        include.append(
            {"name": f"{one['shard']}, {_format_cells(one['cells'])}", "number": number, **values}
        )
    return {"include": include}


def _format_cells(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"


def render_shards(
    shards: Sequence[Shard], exclusions: Iterable[Exclusion], labels: Labels
) -> Iterator[str]:
    """Yield the lines about a planned run: cells, exclusions, shards.

    Args:
        shards: The shards, in order.
        exclusions: The excluded jobs.
        labels: Labels of a runner, by the accelerator it must have.
    """
    jobs = Counter(job.planned.cell.id for one in shards for job in one.jobs)
    width = max(map(len, jobs))
    for cell, many in jobs.items():
        yield f"{cell:{width}}  {plural(many, 'job')}"
    seconds = sum(one.seconds for one in shards)
    total = f"{plural(jobs.total(), 'job')} in {plural(len(jobs), 'cell')}"
    duration = _format_seconds(seconds)
    yield f"{total}, about {duration} one after another, with what it takes to open cells"
    reasons = Counter(exclusion.reason for exclusion in exclusions)
    for reason, many in reasons.most_common(MOST):
        yield f"left out: {many:,}: {sanitize(reason)}"
    if len(reasons) > MOST:
        yield f"and {len(reasons) - MOST} more reasons"
    if len(shards) > 1:
        for number, one in enumerate(shards, 1):
            cells = list(dict.fromkeys(job.planned.cell.id for job in one.jobs))
            runner = labels[one.runner]
            label = runner if isinstance(runner, str) else ",".join(runner)
            yield (
                f"shard {number}/{len(shards)}  {label}  {plural(len(one.jobs), 'job')}, "
                f"{_format_seconds(one.seconds)}: {_format_cells(cells)}"
            )


def _format_seconds(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
