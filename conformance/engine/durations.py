"""Durations of jobs: updated from runs, stored in a file, estimated if unknown. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
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
"""Name of the file in the folder of the matrices, which all runners have in common."""
UNKNOWN: Final = 1.0
"""Seconds of a job on a kind of platform without any durations."""
_KIND: Final = re.compile(r"-(cpu|gpu|tpu|cuda|rocm)(?=[\d.-]|$)")


class Durations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Durations of jobs.

    Attributes:
        seconds: Seconds by kind of platform and case.
    """

    seconds: dict[str, dict[str, float]] = msgspec.field(default_factory=dict)

    def estimate(self, job: Job) -> float:
        """Return the expected seconds of a job: the median of its platform if the case is unknown.

        Args:
            job: Job whose duration is unknown or recorded.
        """
        kind = job.planned.cell.place.kind
        known = self.seconds.get(kind, {}).get(job.case.id)
        return self._medians.get(kind, UNKNOWN) if known is None else known

    @cached_property
    def _medians(self) -> dict[str, float]:
        return {kind: median(known.values()) for kind, known in self.seconds.items() if known}

    def encode(self) -> bytes:
        """Return the content of the file: one line per case, in a fixed order."""
        # The file is committed: a change of one case is a change of one line.
        ordered = {kind: dict(sorted(of.items())) for kind, of in sorted(self.seconds.items())}
        text = msgspec.json.encode({"seconds": ordered})
        return msgspec.json.format(text, indent=1) + b"\n"


def update_durations(records: Iterable[Record], before: Durations) -> Durations:
    """Return durations updated with those of runs.

    Args:
        records: Records of any runs.
        before: Durations so far, kept for jobs without a record.
    """
    measured: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        kind, took = _KIND.search(record.cell), record.seconds.get("job")
        if kind is not None and took:
            measured[kind[1]][record.case].append(took)
    updated = {name: dict(of) for name, of in before.seconds.items()}
    for name, of in measured.items():
        # The median over releases: a job that hung or was compiled slowly does not count.
        medians = {case: round(median(took), 2) for case, took in of.items()}
        updated[name] = {**updated.get(name, {}), **medians}
    return Durations(seconds=updated)


def decode_durations(content: bytes, name: str) -> Durations:
    """Decode the content of a file of durations.

    Args:
        content: Content of the file.
        name: Name of the file, for the message.

    Raises:
        UsageError: If it does not contain durations.
    """
    try:
        return msgspec.json.decode(content, type=Durations)
    except MALFORMED as error:
        raise UsageError(
            f"{name}: expected durations of jobs: {str(error).lower()}; write it again with "
            "conformance plan --learn RUN"
        ) from None
