"""Times that a program prints: the numbers in its output that differ from run to run. Pure.

A report about speed usually prints what it measured. These numbers leave out the imports and the
compilation, which are most of the time of a short program and change from release to release.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.search.equivalence import shorten
from conformance.search.metrics import Metric, format_seconds
from conformance.search.predicates import STDOUT, decode_output

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.engine.cache.blobs import BlobStore
    from conformance.engine.runs.stored_job import StoredJob

SAMPLES: Final = 64
"""Number of outputs that stay parsed: more than a scan of all releases or both endpoints have."""
_SECONDS: Final = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0,
    "secs": 1.0, "second": 1.0, "seconds": 1.0, "min": 60.0, "minute": 60.0, "minutes": 60.0,
}  # fmt: skip
UNIT: Final = f"(?:{'|'.join(sorted(_SECONDS, key=len, reverse=True))})"
"""Pattern of a unit of time."""
SAME_TIME: Final = 0.2
"""Relative difference of two times that a program measured once each."""
_NUMBER: Final = re.compile(
    # Not a digit of a name, such as float32, and not the deviation of a mean.
    r"(?<![A-Za-z_\d])(?<!±)(?<!± )(?P<number>\d+(?P<decimal>\.\d*)?(?:[eE][+-]?\d+)?)"
    rf"(?: ?(?P<unit>{UNIT})\b(?![/=(\[]))?"
)


class _Place(NamedTuple):
    """Place of a number in an output.

    Attributes:
        line: The line, with `#` for each number and its unit.
        repetition: Number of equal lines before it.
        column: Number of numbers before it in the line.
    """

    line: str
    repetition: int
    column: int


class _Number(NamedTuple):
    value: float
    is_decimal: bool
    has_unit: bool


def find_printed_times(*points: Sequence[StoredJob]) -> list[Metric]:
    """Return a metric for each time that a program prints at each point.

    A time is a number with a unit of time, or a decimal number that differs between two runs at a
    point: a release, a loss and a size are the same each time.

    Args:
        points: The samples of each point.
    """
    runs = [[_read_numbers(sample) for sample in samples] for samples in points]
    everywhere = set.intersection(*(set(numbers) for point in runs for numbers in point))
    # In the order of the output, which a set does not keep.
    return [
        _make_metric(place, runs[0][0][place])
        for place in runs[0][0]
        if place in everywhere and any(_is_time([run[place] for run in point]) for point in runs)
    ]


def _is_time(numbers: Sequence[_Number]) -> bool:
    if all(number.has_unit for number in numbers):
        return True
    return all(n.is_decimal for n in numbers) and len({n.value for n in numbers}) > 1


def _make_metric(place: _Place, first: _Number) -> Metric:
    again = f" ({place.repetition + 1})" if place.repetition else ""
    return Metric(
        name=f"printed time {shorten(place.line)!r}{again}",
        of=partial(_read_number, place),
        render=format_seconds if first.has_unit else "{:g}".format,
        margin=SAME_TIME,
    )


def _read_number(place: _Place, sample: StoredJob) -> float | None:
    number = _read_numbers(sample).get(place)
    return number.value if number else None


def _read_numbers(sample: StoredJob) -> Mapping[_Place, _Number]:
    """Return the numbers of an output, in order."""
    name = sample.record.artifacts.get(STDOUT)
    return _parse_output(sample.blobs, name) if name else {}


# A log of many steps has as many metrics, each of which reads all samples.
@lru_cache(maxsize=SAMPLES)
def _parse_output(blobs: BlobStore, name: str) -> Mapping[_Place, _Number]:
    repetitions: Counter[str] = Counter()
    found = {}
    for text in decode_output(blobs.get(name)).splitlines():
        line = _NUMBER.sub("#", text).strip()
        for column, number in enumerate(_parse_numbers(text)):
            found[_Place(line, repetitions[line], column)] = number
        repetitions[line] += 1
    return found


def _parse_numbers(text: str) -> Iterator[_Number]:
    for match in _NUMBER.finditer(text):
        unit = match["unit"]
        value = float(match["number"]) * (_SECONDS[unit] if unit else 1.0)
        yield _Number(value, match["decimal"] is not None, unit is not None)
