"""Size and query times of a store with a year of nightly runs. No jax is started.

`python benchmarks/store.py [--nights 365] [--results 10000] [--postgres URL]`. Most jobs match, a
few cases break in all their cells and are fixed days later, one night in thirty a whole cell is
not provisioned, and new cases are added over the year. Of the cells one is a nightly, whose id
changes with its date.
Targets: any query 0.5 s, the database below 1 GB.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from conformance.engine.runs.digests import Digest, JobState
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.report.history import make_history
from conformance.store.backup import find_damage
from conformance.store.database import parse_address
from conformance.store.run_insertion import StoreEntry
from conformance.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CELLS = 20
BROKEN = 0.004
"""Share of the cases that break each night, in all their cells, for some days."""
START = datetime(2025, 1, 1, 3, tzinfo=UTC)
REPEATS = 5
FINE = JobState(Verdict.MATCH, Outcome.OK, Conformance.CONFORMS)
KNOWN = JobState(Verdict.KNOWN, Outcome.RAISED, Conformance.DEVIATES)
GONE = JobState(Verdict.INFRA, Outcome.INFRA, Conformance.UNKNOWN)


def make_nights(count: int, results: int) -> Iterator[StoreEntry]:
    """Yield the runs of a year, the same each time."""
    chance = random.Random(0)  # noqa: S311 - the same nights each time
    every = [f"family_{n // 30:02d}/case_{n}[argument]" for n in range(results // CELLS)]
    until: dict[int, int] = {}
    for night in range(count):
        # The year starts with nine tenths of the cases.
        number = round(len(every) * (0.9 + 0.1 * night / max(1, count - 1)))
        for case in range(number):
            if until.get(case, -1) < night and chance.random() < BROKEN:
                until[case] = night + chance.randrange(1, 9)
        reason = f"out {night} of 256 elements differ, worst at [3]: 0.5 against 0.25"
        bad = JobState(
            Verdict.REGRESSED, Outcome.OK, Conformance.DEVIATES, reason, "out of elements differ"
        )
        table = np.ones((number, CELLS), "<u4")
        table[::11] = 2
        table[[case for case, end in until.items() if end >= night]] = 4
        if chance.random() < 1 / 30:
            table[:, chance.randrange(CELLS)] = 3
        yield StoreEntry(
            digest=_digest(night, tuple(every[:number]), (FINE, KNOWN, GONE, bad), table)
        )


def _digest(
    night: int, cases: tuple[str, ...], states: tuple[JobState, ...], table: np.ndarray
) -> Digest:
    began = START + timedelta(days=night)
    nightly = f"0.13.0.dev{began:%Y%m%d}"
    releases = (*(f"0.{minor}.0" for minor in range(1, CELLS)), nightly)
    return Digest(
        run=f"{began:%Y%m%d-%H%M%S}-000",
        started=began.isoformat(),
        finished=(began + timedelta(hours=1)).isoformat(),
        exit=0,
        matrix="nightly",
        cases=cases,
        cells=tuple(f"jax{release}-py312-cpu8" for release in releases),
        releases=releases,
        states=states,
        grid=table.tobytes(),
    )


def print_time(what: str, work: Callable[[], object]) -> None:
    """Print the median and range of several calls, in seconds."""
    spent = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        spent.append(time.perf_counter() - begun)
    print(f"  {what:44s} {statistics.median(spent):7.3f} s  ({min(spent):.3f}..{max(spent):.3f})")


def time_queries(where: str, case: str, last: int) -> None:
    """Print the time of each query, and of each command that makes it."""
    store = Store(parse_address(where), sys.exit)
    file = parse_address(where).file
    if file is not None:
        print_time("the file is looked at for damage", lambda: find_damage(file, 1))
    print_time("opened", lambda: Store(parse_address(where), sys.exit))
    print_time("runs", store.load_runs)
    print_time("a case", lambda: store.load_spans(case))
    print_time("regressions and events", store.load_regressions)
    print_time("digests of all runs", store.load_digests)
    print_time(
        "the history of them, as reports have it", lambda: make_history(store.load_digests())
    )
    print_time("states of the last run", lambda: store.load_states(last))
    for arguments in (["runs"], ["show", case], ["regressions"], ["--help"]):
        command = [sys.executable, "-m", "conformance", "history", *arguments]
        environment = {**os.environ, "CONFORMANCE_STORE": where}
        print_time(
            f"conformance history {arguments[0]}, as a process",
            lambda command=command, environment=environment: subprocess.run(  # type: ignore[misc]
                command, env=environment, check=True, stdout=subprocess.DEVNULL
            ),
        )


def add_runs(where: str, entries: list[StoreEntry], last: StoreEntry) -> int:
    """Add runs, print the time, and return the number of the last."""
    store = Store(parse_address(where), sys.exit)
    begun = time.perf_counter()
    store.add(*entries)
    print(f"  {len(entries)} runs added in {time.perf_counter() - begun:.1f} s")
    begun = time.perf_counter()
    (number,) = store.add(last)
    print(f"  one more run added in {time.perf_counter() - begun:.2f} s")
    assert number is not None
    return number


def main() -> None:
    """Add the runs of a year, and time the queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nights", type=int, default=365)
    parser.add_argument("--results", type=int, default=10_000)
    parser.add_argument("--postgres", metavar="URL", help="an empty database, measured too")
    options = parser.parse_args()
    *entries, last = make_nights(options.nights, options.results)
    packed = sum(len(msgspec.msgpack.encode(entry.digest)) for entry in entries)
    print_time("for comparison: the report's history of digests",
         lambda: make_history(entry.digest for entry in [*entries, last]))  # fmt: skip
    case = entries[0].digest.cases[3]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "history.db")
        print(f"a file, {options.nights} nights of {options.results} results")
        number = add_runs(str(file), entries, last)
        size = file.stat().st_size
        print(f"  {size / 1e6:.2f} MB; digests in memory {packed / 1e6:.1f} MB")
        time_queries(str(file), case, number)
        store = Store(parse_address(str(file)), sys.exit)
        pruned = store.prune(START + timedelta(days=options.nights // 2))
        print(f"  half a year pruned: {pruned}")
    if options.postgres:
        print("PostgreSQL")
        time_queries(options.postgres, case, add_runs(options.postgres, entries, last))


if __name__ == "__main__":
    main()
