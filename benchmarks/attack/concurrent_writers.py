"""Runs pairs of commands that write the same files at once, some killed: is anything lost?

`python benchmarks/attack/concurrent_writers.py [--pairs 50] [--kill] [--only KIND]`. Each pair is
two commands of `conformance`, started together in a copy of one project: `accept`, `accept --gone`,
`review`, `history add`, `history prune`, and `run` with `cache prune`. The result must be that of
the same commands one after the other. With `--kill` the second is killed (SIGKILL) at a random
moment and started again. Prints one row for each kind of pair; exit status 1 if a pair lost
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

from tests.projects import write_project  # noqa: E402 - `tests` is importable only now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Words = tuple[str, ...]
    ReadState = Callable[[Path], object]

OLD, NEW = "jax0.6.1-py311-cpu8", "jax0.6.2-py311-cpu8"
MATRIX = '[matrix]\naxes = { jax = ["0.6.1", "0.6.2"] }\n'
NUMBERS = range(6)
LONGEST = 3.0
"""Seconds within which the second command is killed."""


def make_case_file(changed: bool) -> str:
    """Return a case file; if changed, each case has another value than before."""
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
        first: Arguments of one command.
        second: Arguments of the other.
        read_state: Returns the state of a project that neither command may lose.
    """

    first: Words
    second: Words
    read_state: ReadState


class Bench:
    """A project with goldens and runs, made once and copied for each pair.

    Args:
        folder: Folder for the template, its copies and the cache.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.template = folder / "template"
        self.cache = folder / "cache"

    def run(self, project: Path, *words: str, cache: Path | None = None) -> str:
        """Run a command, and return its standard output."""
        process = self.start(project, *words, cache=cache)
        out, _ = process.communicate()
        if process.returncode not in {0, 1}:
            raise RuntimeError(f"{words}: exit status {process.returncode}")
        return out

    def start(self, project: Path, *words: str, cache: Path | None = None) -> subprocess.Popen[str]:
        """Start a command."""
        own = {"PYTHONPATH": str(ROOT), "CONFORMANCE_CACHE": str(cache or self.cache)}
        # In CI `accept` and `review` refuse to write.
        env = {name: value for name, value in os.environ.items() if name != "CI"} | own
        return subprocess.Popen(
            [sys.executable, "-m", "conformance", *words],
            cwd=project, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def make_template(self) -> None:
        """Make goldens, change every case, and run them again; one family is deleted meanwhile."""
        files = {
            "cases/fam/topic.py": make_case_file(changed=False),
            "cases/gone/topic.py": make_case_file(changed=False),
            "matrix/smoke.toml": MATRIX,
        }
        write_project(self.template, files)
        lock = "jax0.6.1-py311.txt"
        locks = self.template / "matrix" / "locks"
        shutil.copy(ROOT / "matrix" / "locks" / lock, locks / lock)
        runs = ("run", "--no-report", "--run")
        self.run(self.template, *runs, "reports/runs/1")
        self.run(self.template, "accept", "--run", "reports/runs/1")
        (self.template / "cases" / "gone" / "topic.py").unlink()
        (self.template / "cases" / "fam" / "topic.py").write_text(
            make_case_file(changed=True), "utf-8"
        )
        self.run(self.template, *runs, "reports/runs/2")
        self.run(self.template, *runs, "reports/runs/3", "--cell", "0.6.2")
        self.run(self.template, "history", "add", "reports/runs/1")

    def list_kinds(self) -> Mapping[str, Kind]:
        """Return the kinds of pairs by name."""
        shown = json.loads(self.run(self.template, "review", "--run", "reports/runs/2", "--json"))
        one, two, *_ = (group["id"] for group in shown["groups"])
        of = ("--run", "reports/runs/2")
        accept, history = ("accept", *of), ("history", "add")
        reject = ("review", *of, "--reason", "why", "--reject")
        return {
            "accept, accept": Kind(
                (*accept, "--cell", OLD), (*accept, "--cell", NEW), read_goldens
            ),
            "accept, review": Kind(
                (*accept, "--cell", OLD), ("review", *of, "--all", "--cell", NEW), read_goldens
            ),
            "accept, accept --gone": Kind(accept, ("accept", "--gone"), read_goldens),
            "review, review": Kind((*reject, one), (*reject, two), read_decisions),
            "history add, history add": Kind(
                (*history, "reports/runs/2"), (*history, "reports/runs/3"), self.read_run_names
            ),
            "history add, history prune": Kind(
                (*history, "reports/runs/2"),
                ("history", "prune", "--keep-days", "0"),
                self.check_added_run,
            ),
            "run, cache prune": Kind(
                ("run", "--no-report", "--fresh", "--run", "reports/runs/4"),
                ("cache", "prune", "--unused", "0"),
                read_verdicts,
            ),
        }

    def read_run_names(self, project: Path) -> object:
        """Return the names of the runs in the store of a project."""
        return sorted(run["name"] for run in self._runs(project))

    def check_added_run(self, project: Path) -> object:
        """Return whether the store has the added run, and whether its verdicts can be read."""
        names = [run["name"] for run in self._runs(project)]
        return ("2" in names, "match" in self.run(project, "history", "regressions", "--json"))

    def _runs(self, project: Path) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.run(project, "history", "runs", "--json"))
        return found

    def run_pair(self, name: str, kind: Kind, moment: float | None) -> object:
        """Run both commands at once in a copy of the project; return its state afterwards.

        Args:
            name: Name of the copy.
            kind: Kind of the pair.
            moment: Seconds until the second is killed and started again; None for never.
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
            _, errors = process.communicate()
            if process.returncode not in {0, 1} or "Traceback" in errors:
                return f"exit status {process.returncode}: {errors}"
        return kind.read_state(project)

    def run_in_order(self, name: str, kind: Kind) -> object:
        """Return the state after the commands ran one after the other."""
        project, cache = self._copy(name, kind)
        self.run(project, *kind.first, cache=cache)
        self.run(project, *kind.second, cache=cache)
        return kind.read_state(project)

    def _copy(self, name: str, kind: Kind) -> tuple[Path, Path]:
        project = self.folder / name
        shutil.copytree(self.template, project)
        if "matrix" not in kind.second:
            return project, self.cache
        # `cache prune` removes environments, which the other pairs need.
        cache = self.folder / f"{name}-cache"
        shutil.copytree(self.cache, cache, symlinks=True, copy_function=os.link)
        return project, cache


def read_goldens(project: Path) -> object:
    """Return every file below the cases of a project."""
    files = (file for file in (project / "cases").rglob("*") if file.is_file())
    return {str(f.relative_to(project)): f.read_bytes() for f in files if f.suffix != ".pyc"}


def read_decisions(project: Path) -> object:
    """Return the groups with a decision in a project."""
    text = (project / "reports" / "runs" / "2" / "review.json").read_bytes()
    return sorted(one["group"] for one in json.loads(text)["decisions"])


def read_verdicts(project: Path) -> object:
    """Return case, cell and verdict of every job of a run."""
    lines = (project / "reports" / "runs" / "4" / "results.jsonl").read_bytes().splitlines()
    records = map(json.loads, lines)
    return sorted((one["case"], one["cell"], one["verdict"]) for one in records)


def main() -> int:
    """Run pairs, and print the number of pairs that lost nothing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--only", default="", help="part of the name of a kind")
    options = parser.parse_args()
    intact, tried = Counter[str](), Counter[str]()
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="concurrent-") as scratch:
        bench = Bench(Path(scratch))
        bench.make_template()
        kinds = {name: kind for name, kind in bench.list_kinds().items() if options.only in name}
        expected = {
            name: bench.run_in_order(f"expected-{n}", kind)
            for n, (name, kind) in enumerate(kinds.items())
        }
        for number in range(options.pairs):
            name = [*kinds][number % len(kinds)]
            moment = random.Random(number).uniform(0, LONGEST)  # noqa: S311 - the same each time
            state = bench.run_pair(str(number), kinds[name], moment if options.kill else None)
            tried[name] += 1
            intact[name] += state == expected[name]
            if state != expected[name]:
                print(f"pair {number}, {name}: {str(state)[:500]}", flush=True)
            for copy in Path(scratch).glob(f"{number}*"):
                shutil.rmtree(copy, ignore_errors=True)
    print("| pair | made | lost nothing |\n|---|---|---|")
    for name, number in tried.items():
        print(f"| {name} | {number} | {intact[name]} |")
    killed = ", the second of each killed once" if options.kill else ""
    print(f"{intact.total()} of {tried.total()} pairs lost nothing{killed}", end="; ")
    print(f"{time.perf_counter() - begun:.0f} s")
    return 0 if intact == tried else 1


if __name__ == "__main__":
    sys.exit(main())
