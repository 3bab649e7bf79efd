"""Whether an upgrade tells what every release would: its time, its jobs, the changes it finds.

`python benchmarks/upgrade.py [FROM TO [SELECT ...]]`, in a project; by default all cases from
0.5.3 to 0.12.0.1. Nothing is taken from the cache, first as usual, then with every case on every
release. `python benchmarks/upgrade.py same RELEASE [SELECT ...]`: an environment is upgraded to one
that has the same packages, five times.
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
        same(*sys.argv[2:])
        return
    before, after, *select = sys.argv[1:] or ["0.5.3", "0.12.0.1"]
    usual, seconds = upgraded(before, after, *select, "--fresh")
    thorough, longer = upgraded(before, after, *select, "--fresh", "--thorough")
    print(f"{len(usual['cases'])} cases compared, {len(usual['flaky'])} flaky")
    tried, every = usual["jobs"]["tried"], thorough["jobs"]["tried"]
    print(f"jobs     {tried:6,} of {every:6,}  {100 * tried / every:5.1f} %")
    print(f"seconds  {seconds:6.0f} of {longer:6.0f}  {100 * seconds / longer:5.1f} %")
    found, there = changes(usual), changes(thorough)
    print(f"changes  {len(found)} of {len(there)}; {len(found - there)} that are not there")
    alike = {(one["case"], one["platform"]) for one in thorough["cases"]} - {
        (case, platform) for case, platform, _ in found
    }
    missed = there - found
    detours = {one for one in missed if one[:2] in alike}
    others = len(missed - detours)
    print(f"missed   {len(detours)} of cases that are alike at both ends, {others} of others")
    print("kinds    " + ", ".join(f"{n} {kind}" for kind, n in usual["counts"].items() if n))


def upgraded(*arguments: str) -> tuple[dict[str, Any], float]:
    """Return what an upgrade says, and how many seconds it took."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [sys.executable, "-m", "conformance", "upgrade", *arguments, "--json", file.name]
        start = perf_counter()
        ended = subprocess.run(
            [*command, "--no-report"], check=False, capture_output=True, text=True
        )
        spent = perf_counter() - start
        if ended.returncode not in {0, 1}:
            sys.exit(ended.stderr)
        said: dict[str, Any] = json.loads(Path(file.name).read_text())
    return said, spent


def changes(said: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Return every change: case, platform and release."""
    return {(one["case"], one["platform"], one["changed_in"]) for one in said["transitions"]}


def same(release: str, *select: str) -> None:
    """Upgrade an environment to one with the same packages, and count what is said to change."""
    with tempfile.TemporaryDirectory() as folder:
        ends = [environment(Path(folder, name), release) for name in "ab"]
        for number in range(REPEATS):
            said, seconds = upgraded(*ends, *select, "--fresh")
            counts = Counter(one["kind"] for one in said["transitions"])
            told = f"{sum(counts.values())} changes, {len(said['flaky'])} flaky"
            print(f"the same {number + 1}: {told} in {len(said['cases'])} cases, {seconds:.0f} s")


def environment(folder: Path, release: str) -> str:
    """Make an environment of a release's lock, and return the selector of it."""
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
