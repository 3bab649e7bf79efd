"""Compares an upgrade with one that tries every release: seconds, jobs, and changes found.

`python benchmarks/upgrade.py [FROM TO [SELECT ...]]`, in a project; by default all cases from
0.5.3 to 0.12.0.1. The cache is not used. The first upgrade is the usual one, the second tries every
case on every release. `python benchmarks/upgrade.py same RELEASE [SELECT ...]`: an environment is
upgraded to one that has the same packages, five times.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

from conformance.cells.interpreters import find_interpreter

REPEATS = 5


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["same"]:
        measure_twins(*sys.argv[2:])
        return
    before, after, *select = sys.argv[1:] or ["0.5.3", "0.12.0.1"]
    usual, seconds = run_upgrade(before, after, *select, "--fresh")
    thorough, longer = run_upgrade(before, after, *select, "--fresh", "--thorough")
    print(f"{len(usual['cases'])} cases compared, {len(usual['flaky'])} flaky")
    tried, every = usual["jobs"]["tried"], thorough["jobs"]["tried"]
    print(f"jobs     {tried:6,} of {every:6,}  {100 * tried / every:5.1f} %")
    print(f"seconds  {seconds:6.0f} of {longer:6.0f}  {100 * seconds / longer:5.1f} %")
    found, every_change = read_changes(usual), read_changes(thorough)
    wrong = len(found - every_change)
    print(f"changes  {len(found)} of {len(every_change)}; {wrong} that are not there")
    alike = {(one["case"], one["platform"]) for one in thorough["cases"]} - {
        (case, platform) for case, platform, _ in found
    }
    missed = every_change - found
    detours = {one for one in missed if one[:2] in alike}
    others = len(missed - detours)
    print(f"missed   {len(detours)} of cases that are alike at both ends, {others} of others")
    print("kinds    " + ", ".join(f"{n} {kind}" for kind, n in usual["counts"].items() if n))


def run_upgrade(*arguments: str) -> tuple[dict[str, Any], float]:
    """Return the JSON of an upgrade, and its seconds."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, "-m", "conformance", "upgrade", *arguments, "--json", file.name]
        start = perf_counter()
        ended = subprocess.run(
            [*command, "--no-report"], check=False, capture_output=True, text=True
        )
        spent = perf_counter() - start
        if ended.returncode not in {0, 1}:
            sys.exit(ended.stderr)
        answer: dict[str, Any] = json.loads(Path(file.name).read_text())
    return answer, spent


def read_changes(answer: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Return the case, platform and release of every change."""
    return {(one["case"], one["platform"], one["changed_in"]) for one in answer["transitions"]}


def measure_twins(release: str, *select: str) -> None:
    """Upgrade an environment to one with the same packages, and count the reported changes."""
    with tempfile.TemporaryDirectory() as folder:
        ends = [make_environment(Path(folder, name), release) for name in "ab"]
        for number in range(REPEATS):
            answer, seconds = run_upgrade(*ends, *select, "--fresh")
            counts = Counter(one["kind"] for one in answer["transitions"])
            found = f"{sum(counts.values())} changes, {len(answer['flaky'])} flaky"
            print(
                f"the same {number + 1}: {found} in {len(answer['cases'])} cases, {seconds:.0f} s"
            )


def make_environment(folder: Path, release: str) -> str:
    """Make an environment from a release's lock, and return its selector."""
    (lock,) = Path("matrix/locks").glob(f"jax{release}-py3??.txt")
    version = lock.stem.rpartition("-py")[2]
    python = find_interpreter(f"{version[0]}.{version[1:]}")
    for command in (
        ["venv", "-q", "--python", str(python), str(folder)],
        ["pip", "install", "-q", "--python", str(folder), "--no-deps", "-r", str(lock)],
    ):
        subprocess.run([sys.executable, "-m", "uv", *command], check=True)
    return f"path:{folder / 'bin' / 'python'}"


if __name__ == "__main__":
    main()
