"""Times that a program measured itself, and numbers that it printed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import re
    from pathlib import Path


def times_of(note: Path) -> dict[str, float]:
    """Return the seconds of a program by what they are of.

    Args:
        note: What its processes wrote, a line of JSON each: `[kind, name, seconds]`.

    Returns:
        `own`, without imports, of the process that took longest; `region NAME`, the fastest entry
        of each region; `regions`, their sum. Empty where nothing was measured.
    """
    try:
        lines = note.read_bytes().splitlines()
    except OSError:
        return {}
    own = 0.0
    regions: dict[str, float] = {}
    for line in lines:
        try:
            kind, name, seconds = msgspec.json.decode(line, type=tuple[str, str, float])
        except msgspec.DecodeError:  # killed while it wrote
            continue
        if kind == "own":
            own = max(own, seconds)
        else:
            regions[f"region {name}"] = min(seconds, regions.get(f"region {name}", math.inf))
    found = {"own": own} if own else {}
    return {**found, **regions, **({"regions": sum(regions.values())} if regions else {})}


def metric_of(stdout: bytes, metric: re.Pattern[str]) -> float | None:
    """Return the last number that a pattern finds in what a program printed.

    Args:
        stdout: It.
        metric: The pattern; its first group is the number, or all of it.

    Returns:
        None where it finds none.
    """
    found = list(metric.finditer(stdout.decode("utf-8", "replace")))
    if not found:
        return None
    text = found[-1][1] if metric.groups else found[-1][0]
    try:
        return float((text or "").replace(",", ""))
    except ValueError:
        return None
