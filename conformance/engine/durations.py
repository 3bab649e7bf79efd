"""How long jobs take, as learned from runs: what parts of a plan are balanced by. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.errors import UsageError
from conformance.files import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.engine.job import Job
    from conformance.model.record import Record

FILE_NAME: Final = "durations.json"
"""In the folder of the matrices, where every runner has the same."""
UNKNOWN: Final = 1.0
"""Seconds of a job where nothing at all is known."""
_KIND: Final = re.compile(r"-(cpu|gpu|tpu|cuda|rocm)(?=[\d.-]|$)")


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
        records: Jobs of any runs; each tells how long it took when it ran.
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
        UsageError: If it does not tell of durations.
    """
    try:
        return msgspec.json.decode(content, type=Durations)
    except MALFORMED as error:
        raise UsageError(
            f"{name}: expected durations of jobs: {str(error).lower()}; make it anew with "
            "conformance plan --learn RUN"
        ) from None
