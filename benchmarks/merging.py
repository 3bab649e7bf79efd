"""Seconds of `conformance merge` for the shards of a run. No jax is started.

`python benchmarks/merging.py RUN`, the directory of a run, preferably of many jobs. Its records
are repeated under other cell names up to 40,000, and divided into 8 shards with their artifacts.
Target: 5 s.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from common import format_line, time_call

from conformance.engine.runs.directory import RunDirectory
from conformance.engine.runs.loader import load_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.runs.loader import LoadedRun
    from conformance.model.record import Record

SHARDS = 8
RESULTS = 5000
REPEATS = 3


def repeat_records(run: LoadedRun) -> Iterator[Record]:
    """Yield the records of a run again and again, each round with other cell names."""
    for round_ in count():
        for record in run.records:
            yield replace(record, cell=f"{record.cell}-config{round_}" if round_ else record.cell)


def write_shards(run: LoadedRun, folder: Path) -> int:
    """Write the shards, and return how many artifacts they have."""
    records = repeat_records(run)
    artifacts = 0
    for number in range(1, SHARDS + 1):
        own = list(islice(records, RESULTS))
        shard = RunDirectory(folder / f"shard-{number}")
        names = {name for record in own for name in record.artifacts.values()}
        for name in names:
            shard.blobs.adopt(name, run.blobs)
        artifacts += len(names)
        shard.write_records(own)
        shard.write_run(replace(
            run.info, request={**run.info.request, "shard": f"{number}/{SHARDS}"},
            plan=tuple((record.case, record.cell) for record in own), exclusions=(),
        ))  # fmt: skip
    return artifacts


def merge(folder: Path, out: Path) -> None:
    """Merge the shards of a folder by the command."""
    shards = map(str, sorted(folder.glob("shard-*")))
    command = [sys.executable, "-m", "conformance", "merge", "--no-report", "--run", str(out)]
    subprocess.run([*command, *shards], check=False, stdout=subprocess.DEVNULL)


def main() -> None:
    """Write shards, merge them, and print how long that took."""
    run = load_run(RunDirectory(Path(sys.argv[1]).absolute()))
    # On the disk of the run, so that its blobs can be hard links.
    with tempfile.TemporaryDirectory(dir=Path(sys.argv[1]).absolute().parent) as name:
        folder = Path(name)
        artifacts = write_shards(run, folder)
        print(f"{SHARDS} shards of {RESULTS:,} results, with {artifacts:,} artifacts")
        outs = [folder / f"whole-{repeat}" for repeat in range(REPEATS)]
        took = [time_call(partial(merge, folder, out)) for out in outs]
        read = [time_call(RunDirectory(out).read_records) for out in outs]
        print(format_line("conformance merge", took))
        print(format_line("reading the merged records", read))


if __name__ == "__main__":
    main()
