"""How much `conformance scan --run` slows a command down.

`python benchmarks/reach_recorder.py COMMAND [--rounds 3]`. Runs the command with and without the
recorder in turn, once more than the rounds to warm up. Prints the processor time of both, which
other work on the machine changes less than the time on the clock, the ratio of the medians, and the
size of the records.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from common import format_line

sys.path.append(str(Path(__file__).resolve().parent.parent))

from conformance.engine.input_files import INSTRUMENTATION
from conformance.worker.instrumentation.sitecustomize import REACHED


def time_run(command: str, records: str = "") -> float:
    """Return the seconds of processor time that a command takes, with a folder for records."""
    path = [*[str(INSTRUMENTATION)] * bool(records), os.environ.get("PYTHONPATH", "")]
    variables = {"PYTHONPATH": os.pathsep.join(filter(None, path)), REACHED: records}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        ["/bin/sh", "-c", command], env={**os.environ, **variables}, check=True,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print both, their ratio and the size of the last records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("command")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    pairs = []
    size = 0
    for _ in range(1 + options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            pairs.append((time_run(options.command), time_run(options.command, folder)))
            size = sum(len(file.read_bytes().rstrip(b"\0")) for file in Path(folder).iterdir())
    without, recorded = map(list, zip(*pairs[1:], strict=True))
    print(format_line("without the recorder", without, "s"))
    print(format_line("with the recorder", recorded, "s"))
    print(f"ratio of the medians {median(recorded) / median(without):.2f}, {size:,} bytes")


if __name__ == "__main__":
    main()
