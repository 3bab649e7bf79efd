"""Changes as a bad commit makes them, planted in a copy of the newest release: what triage reports.

    python benchmarks/planted_changes.py [NAME[+NAME]]...

Each is planted alone in a copy of the environment of the newest release (hard links: little disk is
used, and the files of the release are not touched); `NAME+NAME` plants two in one copy. The whole
corpus then runs in the cell of the copy, without the cache, and `conformance triage` searches the
run. Prints the unexpected jobs by root cause, with first bad release and culprit, and whether the
reproduction fails on the copy and passes on the release.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from planting import load_plants, plant_changes, release_environment, run_conformance

FILE = Path(__file__).with_suffix(".toml")


def main() -> None:
    """Plant, run, triage, print."""
    names = sys.argv[1:] or list(load_plants(FILE))
    release = release_environment()
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        for name in names:
            try_load_plants(name, release, Path(folder) / name.replace("+", "-"))


def try_load_plants(name: str, release: Path, folder: Path) -> None:
    """Plant changes in one copy, run the corpus and triage, and print the result."""
    chosen = [load_plants(FILE)[one] for one in name.split("+")]
    python = plant_changes(release, folder / "copy", chosen)
    start = perf_counter()
    run = folder / "run"
    run_conformance(
        "run", "--cell", f"path:{python}@cpu8", "--fresh", "--no-report", "--run", str(run)
    )
    middle = perf_counter()
    run_conformance("triage", str(run), "--json", str(folder / "triage.json"))
    took = f"run {middle - start:.0f} s, triage {perf_counter() - middle:.0f} s"
    triage = json.loads((folder / "triage.json").read_text())
    for plant in chosen:
        print(plant.summary)
    searched, skipped = len(triage["evidence"]), len(triage["left_out"])
    print(f"  {searched} root causes looked into, {skipped} not; {took}")
    for found in triage["evidence"]:
        print(f"  {triage['jobs'][found['cause']]} jobs, e.g. {found['case']}")
        print_cause(found, run, (python, release / "bin" / "python"))
    sys.stdout.flush()
    shutil.rmtree(folder)


def print_cause(found: dict[str, Any], run: Path, pythons: tuple[Path, Path]) -> None:
    """Print the evidence about one root cause."""
    sure = "confirmed" if found["confirmed"] else "NOT confirmed"
    print(f"    last good {found['last_good']}, first bad {found['first_bad']}, {sure}")
    for culprit in found["culprits"]:
        files = ", ".join(culprit["files"])
        print(f"    {culprit['package']} {culprit['before']} -> {culprit['after']}: {files}")
    if found["repro"]:
        ends = [run_file(python, run / found["repro"]) for python in pythons]
        print(f"    reproduction: exit status {ends[0]} on the copy, {ends[1]} on the release")
    for sentence in found["untold"]:
        print(f"    untold: {sentence}")


def run_file(python: Path, file: Path) -> int:
    """Return the exit status of a file."""
    return subprocess.run([python, file], capture_output=True, check=False).returncode


if __name__ == "__main__":
    main()
