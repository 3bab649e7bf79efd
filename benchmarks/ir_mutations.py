"""Counts the errors of `conformance.ir.difference` on modules with planted mutations.

`python benchmarks/ir_mutations.py [--samples DIR] [--rounds N] [--only MUTATOR]`. Every mutator of
`tests/ir/mutators` is tried on every sample module. Targets: none of
2,000 mutations without a change of meaning is flagged; all of 2,000 changes of meaning are found,
with 3 entries in the median report.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from conformance.ir.difference import diff  # noqa: E402 - `tests` is importable only now
from tests.ir.mutators import EQUAL, MEANING, NOISE  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = ROOT / "tests" / "ir" / "samples"
LARGEST = 120_000
"""Larger modules, in characters, are skipped."""
RAISED = Counter[str]()
"""Exceptions of the diff; each counts as wrong."""


def load_modules(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the sample modules by kind, each with its name and text."""
    endings = {"hlo": ".hlo", "stablehlo": ".generic"}
    return {
        kind: [
            (str(file.relative_to(folder)), text)
            for file in sorted(folder.rglob(f"*{ending}"))
            if len(text := file.read_text(encoding="utf-8")) <= LARGEST
        ]
        for kind, ending in endings.items()
    }


def make_rngs(name: str, where: str, rounds: int) -> Iterator[Random]:
    """Yield a reproducible random generator for each round of a mutator on a module."""
    for number in range(rounds):
        # A seed by name gives the same mutations whichever others are tried.
        yield Random(f"{name} {where} {number}")  # noqa: S311 - reproducible


def is_same(before: str, after: str, kind: str, level: str) -> bool:
    """Say whether the diff reports two texts as equal at a level; an exception counts as wrong."""
    try:
        found = diff(before, after, kind=kind)
    except Exception as error:  # noqa: BLE001 - counted as wrong
        RAISED[f"{type(error).__name__}: {error}"] += 1
        return False
    if level == EQUAL:
        return found.equal and not found.changes
    return found.neutral_equal and all(c.severity != "semantic" for c in found.changes)


def count_entries(before: str, after: str, kind: str) -> int:
    """Return the number of entries in the diff of two texts, 0 for none or an exception."""
    try:
        found = diff(before, after, kind=kind)
    except Exception as error:  # noqa: BLE001 - counted as wrong
        RAISED[f"{type(error).__name__}: {error}"] += 1
        return 0
    return 0 if found.equal else len(found.changes)


def try_noise(known: dict[str, list[tuple[str, str]]], rounds: int, only: str) -> tuple[int, int]:
    """Print mutations without a change of meaning that are flagged; return tried and flagged."""
    total, wrong = 0, 0
    for name, mutator in NOISE.items():
        tried, flagged = 0, Counter[str]()
        for where, text in known[mutator.kind] if only in name else []:
            for rng in make_rngs(name, where, rounds):
                after = mutator.run(text, rng)
                if after is None:
                    continue
                tried += 1
                flagged[where] += not is_same(text, after, mutator.kind, mutator.level)
        print_mutator(name, tried, sum(flagged.values()), flagged, mutator.level)
        total, wrong = total + tried, wrong + sum(flagged.values())
    return total, wrong


def try_meaning(
    known: dict[str, list[tuple[str, str]]], rounds: int, only: str
) -> tuple[int, int, list[int]]:
    """Print changes of meaning that are missed; return tried, missed, and numbers of entries."""
    total, wrong = 0, 0
    sizes: list[int] = []
    for name, mutator in MEANING.items():
        entries, missed = [], Counter[str]()
        for where, text in known[mutator.kind] if only in name else []:
            for rng in make_rngs(name, where, rounds):
                pair = mutator.run(text, rng)
                if pair is None:
                    continue
                count = count_entries(*pair, mutator.kind)
                entries.append(count)
                missed[where] += count < 1
        more = f"median entries {statistics.median(entries):g}" if entries else ""
        print_mutator(name, len(entries), sum(missed.values()), missed, more)
        total, wrong, sizes = total + len(entries), wrong + sum(missed.values()), sizes + entries
    return total, wrong, sizes


def print_mutator(name: str, tried: int, wrong: int, where: Counter[str], more: str) -> None:
    """Print the line of a mutator, with the modules on which the diff was wrong."""
    if not tried:
        return
    places = ", ".join(place for place, count in where.most_common(4) if count)
    print(f"{name:28s} {tried:6d} {wrong:6d} wrong   {more}   {places}", flush=True)


def main() -> None:
    """Try every mutator on every module."""
    parser = argparse.ArgumentParser(description="Count what the diff gets wrong.")
    parser.add_argument("--samples", type=Path, default=SAMPLES)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", default="", help="mutators whose name has this in it")
    options = parser.parse_args()
    known = load_modules(options.samples)
    releases_of: dict[str, set[str]] = defaultdict(set)
    for where, _ in known["hlo"]:
        platform, release, _ = where.split("/")[-3:]
        releases_of[platform].add(release)
    for platform, releases in sorted(releases_of.items()):
        print(f"{platform}: {len(releases)} releases")
    start = time.perf_counter()
    total, wrong = try_noise(known, options.rounds, options.only)
    print(f"noise: {wrong} of {total} flagged\n")
    total, wrong, sizes = try_meaning(known, options.rounds, options.only)
    median = statistics.median(sizes) if sizes else 0
    print(f"meaning: {total - wrong} of {total} found, median entries {median:g}")
    for error, count in RAISED.most_common(9):
        print(f"raised {count} times: {error}")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
