"""Commands that write the same files at once, some of them killed: is anything lost?

`python benchmarks/attack/concurrent_writers.py [--pairs 50] [--kill] [--only KIND]`. Each pair is
two commands of `conformance`, started together in a copy of one project: `accept`, `accept --gone`,
`review`, `history add`, `history prune`, and `cache prune` beside a run. What they leave must be
what the same commands leave one after the other. With `--kill` the second is killed (kill -9) at a
random moment and started again. Prints one row for each kind of pair; exit status 1 if a pair lost
something.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.projects import write_project  # noqa: E402 - tests' package: beside this folder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Words = tuple[str, ...]
    Left = Callable[[Path], object]

OLD, NEW = "jax0.6.1-py311-cpu8", "jax0.6.2-py311-cpu8"
MATRIX = '[matrix]\naxes = { jax = ["0.6.1", "0.6.2"] }\n'
NUMBERS = range(6)
LONGEST = 3.0
"""Seconds within which the second command is killed."""


def cases(changed: bool) -> str:
    """Return a case file; each case that changed does so in a way of its own."""
    functions = (
        f"@probe()\ndef case{n}(env):\n    return np.float32([{n}, {n + 7 if changed else 1}])\n"
        for n in NUMBERS
    )
    head = "import numpy as np\nfrom conformance.kit import probe\n"
    return "\n\n".join([head, *functions])


@dataclass(frozen=True)
class Kind:
    """A kind of pair.

    Attributes:
        first: Words of one command.
        second: Words of the other.
        left: Returns what a project holds that neither may lose, for a comparison.
    """

    first: Words
    second: Words
    left: Left


class Bench:
    """A project with goldens and runs, made once and copied for each pair.

    Args:
        folder: Where everything is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.template = folder / "template"
        self.cache = folder / "cache"

    def call(self, project: Path, *words: str, cache: Path | None = None) -> str:
        """Run a command to its end, and return what it printed."""
        process = self.start(project, *words, cache=cache)
        out, _ = process.communicate()
        if process.returncode not in {0, 1}:
            raise RuntimeError(f"{words}: exit status {process.returncode}")
        return out

    def start(self, project: Path, *words: str, cache: Path | None = None) -> subprocess.Popen[str]:
        """Start a command."""
        told = {"PYTHONPATH": str(ROOT), "CONFORMANCE_CACHE": str(cache or self.cache)}
        env = {name: value for name, value in os.environ.items() if name != "CI"} | told
        return subprocess.Popen(
            [sys.executable, "-m", "conformance", *words],
            cwd=project, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def make(self) -> None:
        """Make goldens, change every case, and run them again; one family is gone by then."""
        files = {
            "cases/fam/topic.py": cases(changed=False),
            "cases/gone/topic.py": cases(changed=False),
            "matrix/smoke.toml": MATRIX,
        }
        write_project(self.template, files)
        lock = "jax0.6.1-py311.txt"
        locks = self.template / "matrix" / "locks"
        shutil.copy(ROOT / "matrix" / "locks" / lock, locks / lock)
        runs = ("run", "--no-report", "--run")
        self.call(self.template, *runs, "reports/runs/1")
        self.call(self.template, "accept", "--run", "reports/runs/1")
        (self.template / "cases" / "gone" / "topic.py").unlink()
        (self.template / "cases" / "fam" / "topic.py").write_text(cases(changed=True), "utf-8")
        self.call(self.template, *runs, "reports/runs/2")
        self.call(self.template, *runs, "reports/runs/3", "--cell", "0.6.2")
        self.call(self.template, "history", "add", "reports/runs/1")

    def kinds(self) -> Mapping[str, Kind]:
        """Return the kinds of pairs."""
        shown = json.loads(self.call(self.template, "review", "--run", "reports/runs/2", "--json"))
        one, two, *_ = (group["id"] for group in shown["groups"])
        of = ("--run", "reports/runs/2")
        accept, history = ("accept", *of), ("history", "add")
        reject = ("review", *of, "--reason", "why", "--reject")
        return {
            "accept, accept": Kind((*accept, "--cell", OLD), (*accept, "--cell", NEW), goldens),
            "accept, review": Kind(
                (*accept, "--cell", OLD), ("review", *of, "--all", "--cell", NEW), goldens
            ),
            "accept, accept --gone": Kind(accept, ("accept", "--gone"), goldens),
            "review, review": Kind((*reject, one), (*reject, two), decisions),
            "history add, history add": Kind(
                (*history, "reports/runs/2"), (*history, "reports/runs/3"), self.added
            ),
            "history add, history prune": Kind(
                (*history, "reports/runs/2"), ("history", "prune", "--keep-days", "0"), self.newest
            ),
            "run, cache prune": Kind(
                ("run", "--no-report", "--fresh", "--run", "reports/runs/4"),
                ("cache", "prune", "--unused", "0"),
                verdicts,
            ),
        }

    def added(self, project: Path) -> object:
        """Return the runs that the store of a project has."""
        return sorted(run["name"] for run in self._runs(project))

    def newest(self, project: Path) -> object:
        """Return whether a store has the run that was added, and can say what it showed."""
        names = [run["name"] for run in self._runs(project)]
        return ("2" in names, "match" in self.call(project, "history", "regressions", "--json"))

    def _runs(self, project: Path) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.call(project, "history", "runs", "--json"))
        return found

    def pair(self, name: str, kind: Kind, moment: float | None) -> object:
        """Run both commands at once in a copy of the project; return what they leave.

        Args:
            name: Of the copy.
            kind: The kind of pair.
            moment: Seconds after which the second is killed and started again; None for never.
        """
        project, cache = self._copy(name, kind)
        first = self.start(project, *kind.first, cache=cache)
        second = self.start(project, *kind.second, cache=cache)
        if moment is not None:
            time.sleep(moment)
            second.kill()
            second.communicate()
            second = self.start(project, *kind.second, cache=cache)
        for process in (first, second):
            _, said = process.communicate()
            if process.returncode not in {0, 1} or "Traceback" in said:
                return f"exit status {process.returncode}: {said}"
        return kind.left(project)

    def in_order(self, name: str, kind: Kind) -> object:
        """Return what the commands leave one after the other."""
        project, cache = self._copy(name, kind)
        self.call(project, *kind.first, cache=cache)
        self.call(project, *kind.second, cache=cache)
        return kind.left(project)

    def _copy(self, name: str, kind: Kind) -> tuple[Path, Path]:
        project = self.folder / name
        shutil.copytree(self.template, project)
        if "matrix" not in kind.second:
            return project, self.cache
        # Environments that are removed are made again: each pair has a cache of its own.
        cache = self.folder / f"{name}-cache"
        shutil.copytree(self.cache, cache, symlinks=True, copy_function=os.link)
        return project, cache


def goldens(project: Path) -> object:
    """Return every file below the cases of a project."""
    files = (file for file in (project / "cases").rglob("*") if file.is_file())
    return {str(f.relative_to(project)): f.read_bytes() for f in files if f.suffix != ".pyc"}


def decisions(project: Path) -> object:
    """Return the groups that are decided on in a project."""
    text = (project / "reports" / "runs" / "2" / "review.json").read_bytes()
    return sorted(one["group"] for one in json.loads(text)["decisions"])


def verdicts(project: Path) -> object:
    """Return case, cell and verdict of every job of a run."""
    lines = (project / "reports" / "runs" / "4" / "results.jsonl").read_bytes().splitlines()
    records = map(json.loads, lines)
    return sorted((one["case"], one["cell"], one["verdict"]) for one in records)


def main() -> int:
    """Run pairs, and print how many lost nothing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--only", default="", help="part of the name of a kind")
    given = parser.parse_args()
    whole, made = Counter[str](), Counter[str]()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="concurrent-") as scratch:
        bench = Bench(Path(scratch))
        bench.make()
        kinds = {name: kind for name, kind in bench.kinds().items() if given.only in name}
        expected = {
            name: bench.in_order(f"expected-{n}", kind)
            for n, (name, kind) in enumerate(kinds.items())
        }
        for number in range(given.pairs):
            name = [*kinds][number % len(kinds)]
            moment = random.Random(number).uniform(0, LONGEST)  # noqa: S311 - the same each time
            left = bench.pair(str(number), kinds[name], moment if given.kill else None)
            made[name] += 1
            whole[name] += left == expected[name]
            if left != expected[name]:
                print(f"pair {number}, {name}: {str(left)[:500]}", flush=True)
            for copy in Path(scratch).glob(f"{number}*"):
                shutil.rmtree(copy, ignore_errors=True)
    print("| pair | made | lost nothing |\n|---|---|---|")
    for name, number in made.items():
        print(f"| {name} | {number} | {whole[name]} |")
    killed = ", the second of each killed once" if given.kill else ""
    print(f"{whole.total()} of {made.total()} pairs lost nothing{killed}", end="; ")
    print(f"{time.perf_counter() - begun:.0f} s")
    return 0 if whole == made else 1


if __name__ == "__main__":
    sys.exit(main())
