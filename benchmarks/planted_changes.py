"""Changes as a bad commit makes them, planted in a copy of the newest release: what is told.

    python benchmarks/planted_changes.py [NAME[+NAME]]...

Each is planted alone in a copy of the environment of the newest release (hard links: little disk is
used, and the files of the release are not touched); `NAME+NAME` plants two in one copy. The whole
corpus then runs in the cell of the copy, anew, and `conformance triage` looks into the run. Printed
are how many jobs were unexpected, how many root causes they are, since when and by what, and
whether the reproduction fails on the copy and passes on the release.
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

from planting import conformance, planted, plants, release_environment

FILE = Path(__file__).with_suffix(".toml")


def main() -> None:
    """Plant, run, look into it, print."""
    names = sys.argv[1:] or list(plants(FILE))
    release = release_environment()
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        for name in names:
            row(name, release, Path(folder) / name.replace("+", "-"))


def row(name: str, release: Path, folder: Path) -> None:
    """Print what comes of one copy."""
    chosen = [plants(FILE)[one] for one in name.split("+")]
    python = planted(release, folder / "copy", chosen)
    start = perf_counter()
    run = folder / "run"
    conformance("run", "--cell", f"path:{python}@cpu8", "--fresh", "--no-report", "--run", str(run))
    middle = perf_counter()
    conformance("triage", str(run), "--json", str(folder / "triage.json"))
    took = f"run {middle - start:.0f} s, triage {perf_counter() - middle:.0f} s"
    told = json.loads((folder / "triage.json").read_text())
    for plant in chosen:
        print(plant.told)
    print(f"  {len(told['evidence'])} root causes looked into, {len(told['left_out'])} not; {took}")
    for found in told["evidence"]:
        print(f"  {told['jobs'][found['cause']]} jobs, e.g. {found['case']}")
        told_of(found, run, (python, release / "bin" / "python"))
    sys.stdout.flush()
    shutil.rmtree(folder)


def told_of(found: dict[str, Any], run: Path, pythons: tuple[Path, Path]) -> None:
    """Print what was found out about one root cause."""
    sure = "confirmed" if found["confirmed"] else "NOT confirmed"
    print(f"    last good {found['last_good']}, first bad {found['first_bad']}, {sure}")
    for culprit in found["culprits"]:
        files = ", ".join(culprit["files"])
        print(f"    {culprit['package']} {culprit['before']} -> {culprit['after']}: {files}")
    if found["repro"]:
        ends = [ran(python, run / found["repro"]) for python in pythons]
        print(f"    reproduction: exit status {ends[0]} on the copy, {ends[1]} on the release")
    for sentence in found["untold"]:
        print(f"    untold: {sentence}")


def ran(python: Path, file: Path) -> int:
    """Return the exit status of a file."""
    return subprocess.run([python, file], capture_output=True, check=False).returncode


if __name__ == "__main__":
    main()
