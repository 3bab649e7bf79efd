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
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import msgspec
from common import ROOT, prepared, setting

from conformance.cells.provision import provision

if TYPE_CHECKING:
    from collections.abc import Iterable

CELL = "latest@cpu8"
FILE = Path(__file__).with_suffix(".toml")
PACKAGES = "lib/python*/site-packages/jax"


class Plant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change of one file of jax.

    Attributes:
        told: What it is.
        file: The file.
        edits: What stands there once, and what is put in its place.
    """

    told: str
    file: str
    edits: tuple[tuple[str, str], ...]


def plants() -> dict[str, Plant]:
    """Return the changes of `planted_changes.toml`, by name."""
    return msgspec.toml.decode(FILE.read_bytes(), type=dict[str, Plant])


def main() -> None:
    """Plant, run, look into it, print."""
    names = sys.argv[1:] or list(plants())
    release = release_environment()
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        for name in names:
            row(name, release, Path(folder) / name.replace("+", "-"))


def release_environment() -> Path:
    """Return the environment of the newest release, made if it is not there."""
    preparation = prepared(CELL)
    (planned,) = preparation.cells
    lock = preparation.locks[planned.cell.id]
    return provision(planned.cell, lock=lock, cache=setting().cache).python.parent.parent


def planted(release: Path, copy: Path, chosen: Iterable[Plant]) -> Path:
    """Return the interpreter of a copy of an environment with some changes in it."""
    shutil.copytree(release, copy, symlinks=True, copy_function=os.link)
    (jax,) = copy.glob(PACKAGES)
    for plant in chosen:
        file = jax / plant.file
        text = file.read_text()
        for before, after in plant.edits:
            assert text.count(before) == 1, f"{plant.file}: {before!r} is not there once"
            text = text.replace(before, after)
        file.unlink()  # the release has the same file
        file.write_text(text)
    return copy / "bin" / "python"


def row(name: str, release: Path, folder: Path) -> None:
    """Print what comes of one copy."""
    chosen = [plants()[one] for one in name.split("+")]
    python = planted(release, folder / "copy", chosen)
    start = perf_counter()
    run = folder / "run"
    conformance(
        "run", "--cell", f"path:{python}@cpu8", "--fresh", "--no-report", "--run-dir", str(run)
    )
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


def conformance(*arguments: str) -> None:
    """Run a command of ours; a status other than 0 is what is to be seen."""
    command = [sys.executable, "-m", "conformance", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in {0, 1}, done.stderr


if __name__ == "__main__":
    main()
