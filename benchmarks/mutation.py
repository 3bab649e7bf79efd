"""How many small mistakes in jax the corpus catches.

    python benchmarks/mutation.py [NAME]...

Each mistake of `mutation.toml` is planted alone in a copy of the environment of the newest release
(hard links: little disk is used, and the files of the release are not touched). The families that
should notice it run in the cell of the copy, without the cache; the whole corpus runs if they do
not. A mistake is caught if a job is unexpected that is not unexpected on an untouched copy. Prints
the number of jobs that notice each mistake, one of them with its reason, and the share caught.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from planting import load_plants, plant_changes, release_environment, run_conformance

from conformance.model.outcome import Conformance, Verdict, is_unexpected

if TYPE_CHECKING:
    from planting import Plant

FILE = Path(__file__).with_suffix(".toml")


def main() -> None:
    """Plant, run, count, print."""
    known = load_plants(FILE)
    names = sys.argv[1:] or list(known)
    release = release_environment()
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        folder = Path(name)
        usual = find_unexpected(release, folder, None, ())
        print(f"untouched: {len(usual)} jobs are unexpected", flush=True)
        caught = sum(
            try_mistake(name, release, folder, (known[name], set(usual))) for name in names
        )
    print(f"caught: {caught} of {len(names)}, {100 * caught / len(names):.0f} %")


def try_mistake(name: str, release: Path, folder: Path, plant: tuple[Plant, set[str]]) -> bool:
    """Print the jobs that notice a mistake, and return whether any does."""
    mistake, usual = plant
    start = perf_counter()
    found: dict[str, str] = {}
    for families in (mistake.families, ()):
        unexpected = find_unexpected(release, folder, mistake, families)
        found = {job: why for job, why in unexpected.items() if job not in usual}
        if found:
            break
    took = f"{perf_counter() - start:.0f} s"
    print(f"{name}: {mistake.summary}")
    if found:
        job, why = next(iter(found.items()))
        print(f"  caught by {len(found)} jobs ({took}), e.g. {job}: {why[:120]}", flush=True)
    else:
        why = mistake.survives_because or "NOT explained"
        print(f"  survived the whole corpus ({took}): {why}", flush=True)
    return bool(found)


def find_unexpected(
    release: Path, folder: Path, plant: Plant | None, families: tuple[str, ...]
) -> dict[str, str]:
    """Return the cases that are unexpected on a copy, each with its first reason."""
    copy, run = folder / "copy", folder / "run"
    try:
        python = plant_changes(release, copy, [plant] if plant else [])
        run_conformance(
            "run", *families, "--cell", f"path:{python}@cpu8", "--fresh", "--no-report",
            "--run", str(run), "--json", str(folder / "result.json"),
        )  # fmt: skip
        results = json.loads((folder / "result.json").read_text())["results"]
    finally:
        for path in (copy, run):
            shutil.rmtree(path, ignore_errors=True)
    return {
        one["case"]: (one["reasons"] or [one["verdict"]])[0]
        for one in results
        if is_unexpected(Verdict(one["verdict"]), Conformance(one["conformance"]))
    }


if __name__ == "__main__":
    main()
