"""Shards of a plan, balanced by how long jobs took in earlier runs. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.errors import UsageError
from conformance.files import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from conformance.engine.job import Job
    from conformance.model.record import Record

    Seconds = Callable[[Job], float]


OPEN = 20.0
"""Seconds that a runner takes to provide a cell's environment and to start its worker there."""
_ROUNDING = 1e-9
_STEPS = 60
"""Halvings of the interval in which the shortest time is."""
FILE_NAME: Final = "durations.json"
"""In the folder of the matrices, where every runner has the same."""
UNKNOWN: Final = 1.0
"""Seconds of a job where nothing at all is known."""
_KIND: Final = re.compile(r"-(cpu|gpu|tpu|cuda|rocm)(?=[\d.-]|$)")


@dataclass(slots=True)
class Shard:
    """A part of a plan: jobs that follow one another, so that it has few cells.

    Attributes:
        runner: Accelerator that its host must have, empty for none.
        jobs: The jobs.
        seconds: How long they take, one after another.
    """

    runner: str
    jobs: list[Job] = field(default_factory=list)
    seconds: float = 0.0


def required_accelerator(job: Job) -> str:
    """Return the accelerator that a job's host must have, `gpu` or `tpu`; empty for none."""
    place = job.planned.cell.place
    return place.kind if place.real else ""


def split_into_shards(jobs: Sequence[Job], count: int, seconds: Seconds) -> list[Shard]:
    """Return parts that take about as long as one another; together they are the whole, in order.

    No part has jobs for hosts of different kinds, unless there are fewer parts than kinds.

    Args:
        jobs: Jobs in the order of a plan: those of a cell together.
        count: Number of parts.
        seconds: How long a job takes.

    Returns:
        As many parts as asked for, or as there are jobs if those are fewer.
    """
    kinds = [list(some) for _, some in groupby(jobs, required_accelerator)]
    if len(kinds) > count:
        kinds = [list(jobs)]
    least = max(map(seconds, jobs), default=0.0)
    # A sum depends on its order: one part must be enough for all, whatever is added first.
    most = (sum(map(seconds, jobs)) + OPEN * len(jobs)) * (1 + _ROUNDING)
    for _ in range(_STEPS):
        middle = (least + most) / 2
        if len(_fill(kinds, middle, seconds)) > count:
            least = middle
        else:
            most = middle
    found = _fill(kinds, most, seconds)
    while len(found) < min(count, len(jobs)):
        _halve(found, seconds)
    return found


def _fill(kinds: Iterable[Sequence[Job]], limit: float, seconds: Seconds) -> list[Shard]:
    """Return as few parts as do not take longer than a limit, or have one job."""
    found = []
    for jobs in kinds:
        shard = Shard(next(filter(None, map(required_accelerator, jobs)), ""))
        for job in jobs:
            if shard.jobs and shard.seconds + _more(shard, job, seconds) > limit:
                found.append(shard)
                shard = Shard(shard.runner)
            shard.seconds += _more(shard, job, seconds)
            shard.jobs.append(job)
        found.append(shard)
    return found


def _more(shard: Shard, job: Job, seconds: Seconds) -> float:
    """Return how much longer a part takes with one more job."""
    opened = bool(shard.jobs) and shard.jobs[-1].planned is job.planned
    return seconds(job) + (0.0 if opened else OPEN)


def _halve(found: list[Shard], seconds: Seconds) -> None:
    """Make two parts of the longest that has several jobs."""
    place = max((n for n, one in enumerate(found) if len(one.jobs) > 1),
                key=lambda n: found[n].seconds)  # fmt: skip
    longest = found[place]
    first, second = Shard(longest.runner), Shard(longest.runner)
    for number, job in enumerate(longest.jobs):
        last = number == len(longest.jobs) - 1
        half = first.seconds + _more(first, job, seconds) > longest.seconds / 2
        into = second if second.jobs or (first.jobs and (half or last)) else first
        into.seconds += _more(into, job, seconds)
        into.jobs.append(job)
    found[place : place + 1] = [first, second]


class Durations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long jobs take.

    Attributes:
        seconds: Seconds by kind of platform, and by case.
    """

    seconds: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)

    def of(self, job: Job) -> float:
        """Return how long a job takes, in seconds.

        Of a case that is not known on a kind of platform that is what cases take there.

        Args:
            job: The job.
        """
        known = self.seconds.get(job.planned.cell.place.kind, {})
        if job.case.id in known:
            return known[job.case.id]
        return median(known.values()) if known else UNKNOWN

    def encoded(self) -> bytes:
        """Return it as a file, a case a line, in the same order each time."""
        ordered = {kind: dict(sorted(of.items())) for kind, of in sorted(self.seconds.items())}
        text = msgspec.json.encode({"seconds": ordered})
        return msgspec.json.format(text, indent=1) + b"\n"


def update_durations(records: Iterable[Record], before: Durations) -> Durations:
    """Return what runs tell of durations; what they do not tell of stays as it was.

    Args:
        records: Records of any runs, with the seconds that each job took.
        before: What was known.
    """
    seen: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        named, took = _KIND.search(record.cell), record.seconds.get("job")
        if named is not None and took:
            seen[named[1]][record.case].append(took)
    found = {kind: dict(of) for kind, of in before.seconds.items()}
    for kind, of in seen.items():
        middles = {case: round(median(took), 2) for case, took in of.items()}
        found[kind] = {**found.get(kind, {}), **middles}
    return Durations(seconds=found)


def decode_durations(content: bytes, name: str) -> Durations:
    """Return what a file says.

    Args:
        content: The file.
        name: What it is called, for the message.

    Raises:
        UsageError: If it does not contain durations.
    """
    try:
        return msgspec.json.decode(content, type=Durations)
    except MALFORMED as error:
        raise UsageError(
            f"{name}: expected durations of jobs: {str(error).lower()}; make it anew with "
            "conformance plan --learn RUN"
        ) from None
