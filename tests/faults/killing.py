"""Runs that are killed at some moment, and what must be true of them in the end.

Used by `test_kills.py`, which kills a few times, and by `benchmarks/attack/kills.py`, which kills
often.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import psutil

from conformance.cache_folder import CacheFolder
from conformance.engine.blobs import BlobStore
from conformance.engine.run_directory import RESULTS, RUN
from conformance.files import TEMPORARY
from tests.projects import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

CELLS: Final = ("0.6.2", "0.10.2")
CASES: Final = ("cases/aot_placement/donation.py", "cases/odd")
ODD: Final = """\
import os
import time

import numpy as np
from conformance.kit import Observed, probe


@probe()
def deviates(env):
    return Observed(np.int32(3), reference=np.int32(4))


@probe()
def aborts(env):
    os.abort()


@probe(params={"n0": {"n": 0}, "n1": {"n": 1}, "n2": {"n": 2}, "n3": {"n": 3}, "n4": {"n": 4}})
def takes_a_while(env, n):
    time.sleep(0.3)
    return Observed(np.int32(n), reference=np.int32(n))
"""
"""Cases that are run a second time before they are reported, and some in which to be killed."""
VICTIMS: Final = ("orchestrator", "job", "fork server")
MEASURED: Final = ("seconds", "max_rss_bytes", "attempts", "cached", "notes")
"""What differs between two runs of the same."""
PATIENCE: Final = 120.0
GONE: Final = 60.0
"""Seconds within which what was started is to be gone: a worker imports jax before it looks."""
MARK: Final = "TMPDIR"
"""Variable by which what a run started is found; workers get it, and each run has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of one trial.

    Attributes:
        victim: What was to be killed.
        moment: Seconds after the start.
        killed: Whether it was there to be killed.
        recorded: Jobs that were recorded at that moment.
        resumed: How often the run was resumed until it ended.
        problems: What is not as it should be; empty when all is well.
    """

    victim: str
    moment: float
    killed: bool
    recorded: int
    resumed: int
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class Trials:
    """Trials with one project, each in a folder of its own.

    Attributes:
        folder: Where everything is; the package cache is best on the same disk.
        cells: Selectors of the cells.
        cases: Files and folders of cases, in the project.
        envs: Environments that are there already in trials that do not make their own; None makes
            them first.
        whole: What an undisturbed run came to, by job.
        kept: What it left in the cache of results, by file.
        seconds: How long it took.
    """

    folder: Path
    cells: tuple[str, ...] = CELLS
    cases: tuple[str, ...] = CASES
    envs: Path | None = None
    whole: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    kept: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0

    def begin(self) -> None:
        """Make the project, and run it undisturbed."""
        project = self.folder / "project"
        (project / "cases" / "odd").mkdir(parents=True)
        (project / "cases" / "odd" / "odd.py").write_text(ODD)
        (project / "cases" / "aot_placement").symlink_to(ROOT / "cases" / "aot_placement")
        (project / "matrix").symlink_to(ROOT / "matrix")
        if self.envs is None:
            self.envs = self.folder / "envs"
            self.envs.mkdir()
            self._undisturbed("making")
        self.seconds = self._undisturbed("whole")

    def _undisturbed(self, name: str) -> float:
        """Run without a fault, keep what it came to, and return how long it took."""
        trial = _Trial(self, self.folder / name)
        start = time.monotonic()
        code, said = trial.finish(trial.start(*self._asked()))
        seconds = time.monotonic() - start
        assert code == 1, said
        self.whole, self.kept = _by_job(trial.run), _cached(trial.cache)
        trial.remove()
        return seconds

    def _asked(self) -> tuple[str, ...]:
        return (*self.cases, *(word for cell in self.cells for word in ("--cell", cell)))

    def trial(self, number: int, victim: str, moment: float, *, making: bool = False) -> Told:
        """Kill something at some moment, resume, and compare.

        Args:
            number: Of the trial.
            victim: What to kill, one of `VICTIMS`.
            moment: When, as a part of the time that an undisturbed run takes.
            making: Whether the environments are made in this trial.
        """
        trial = _Trial(self, self.folder / f"trial-{number}", making=making)
        at = moment * self.seconds
        process = trial.start(*self._asked())
        end = time.monotonic() + at
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.002)
        killed = trial.kill(process, victim, random.Random(number))  # noqa: S311 - as before
        recorded = trial.recorded
        code, said = trial.finish(process)
        problems = list(trial.left(said))
        resumed = 0
        while code < 0 and resumed < 3:
            resumed += 1
            more = ("--resume",) if (trial.run / RUN).exists() else self._asked()
            code, said = trial.finish(trial.start(*more))
            problems += trial.left(said)
        problems += [] if code == 1 else [f"exit status {code}, expected 1: {said}"]
        problems += trial.differences()
        if not problems:
            trial.remove()
        return Told(
            victim=victim, moment=at, killed=killed, recorded=recorded, resumed=resumed,
            problems=tuple(problems),
        )  # fmt: skip


class _Trial:
    """One run, with a cache and a folder for temporary files of its own."""

    def __init__(self, trials: Trials, folder: Path, *, making: bool = False) -> None:
        self._trials = trials
        self.folder = folder
        self.run = folder / "run"
        self.cache = folder / "cache"
        self._scratch = folder / "tmp"
        self.cache.mkdir(parents=True)
        self._scratch.mkdir()
        if not making and trials.envs is not None:
            (self.cache / "envs").symlink_to(trials.envs)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `conformance run`."""
        surroundings = {
            "PYTHONPATH": str(ROOT), "CONFORMANCE_CACHE": str(self.cache), "COLUMNS": "200",
            MARK: str(self._scratch),
        }  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "conformance", "run", "--jobs", "2",
             "--run", str(self.run), *arguments],
            cwd=self._trials.folder / "project", env={**os.environ, **surroundings},
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def finish(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        """Wait for the end; return the exit status and what was said of errors."""
        _, said = process.communicate(timeout=PATIENCE)
        return process.returncode, said

    @property
    def recorded(self) -> int:
        """How many jobs are recorded."""
        file = self.run / RESULTS
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def kill(self, process: subprocess.Popen[str], victim: str, chance: random.Random) -> bool:
        """Kill something of a run as soon as it is there; return whether it ever was."""
        while process.poll() is None:
            found = _found(process.pid, victim)
            if found:
                try:
                    chance.choice(found).kill()
                except psutil.NoSuchProcess:
                    continue
                return True
            time.sleep(0.002)
        return False

    def left(self, said: str) -> Iterable[str]:
        """Return what should not be there after a run has ended."""
        if "Traceback" in said:
            yield said
        end = time.monotonic() + GONE
        while (alive := _marked(str(self._scratch))) and time.monotonic() < end:
            time.sleep(0.05)
        for one in alive:
            yield f"process {one.pid} is left: {' '.join(one.cmdline())[:200]}"

    def differences(self) -> Iterable[str]:
        """Return how a run that has ended differs from the undisturbed one."""
        lines = [json.loads(line) for line in (self.run / RESULTS).read_bytes().splitlines()]
        jobs = [(line["case"], line["cell"]) for line in lines]
        yield from (f"{job} is recorded twice" for job in set(jobs) if jobs.count(job) > 1)
        seen = _by_job(self.run)
        for job in sorted(self._trials.whole.keys() | seen.keys()):
            yield from _differing(str(job), self._trials.whole.get(job), seen.get(job))
        kept = _cached(self.cache)
        for name in sorted(self._trials.kept.keys() & kept.keys()):
            yield from _differing(f"cached {name}", self._trials.kept[name], kept[name])
        for name in sorted(kept.keys() - self._trials.kept.keys()):
            yield f"cached {name}, which an undisturbed run does not keep"
        yield from self._broken(self.run, (hash_ for one in seen.values() for hash_ in _of(one)))
        yield from self._broken(self.cache, (hash_ for one in kept.values() for hash_ in _of(one)))
        for path in self.folder.rglob(f"{TEMPORARY}*"):
            yield f"{path} is left"
        for path in self._scratch.iterdir():
            yield f"{path} is left"

    def _broken(self, folder: Path, hashes: Iterable[str]) -> Iterable[str]:
        blobs = BlobStore(folder / "blobs")
        for name in set(hashes):
            try:
                blobs.get(name)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                yield f"{folder.name}: {error}"

    def remove(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder)


def _found(orchestrator: int, victim: str) -> list[psutil.Process]:
    try:
        parent = psutil.Process(orchestrator)
        if victim == "orchestrator":
            return [parent]
        servers = [one for one in parent.children() if "worker/main.py" in " ".join(one.cmdline())]
        if victim == "fork server":
            return servers
        return [job for server in servers for job in server.children()]
    except psutil.Error:
        return []


def _marked(mark: str) -> list[psutil.Process]:
    found = []
    for one in psutil.process_iter():
        try:
            if one.environ().get(MARK) == mark and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except psutil.Error:
            continue
    return found


def _by_job(run: Path) -> dict[tuple[str, str], dict[str, Any]]:
    records = (json.loads(line) for line in (run / RESULTS).read_bytes().splitlines())
    return {(one["case"], one["cell"]): _lasting(one) for one in records}


def _cached(cache: Path) -> dict[str, dict[str, Any]]:
    entries = CacheFolder(cache / "results")
    found = {}
    for file in entries.folder.glob("*/*/*.json"):
        content = entries.read(file)
        assert content is not None, f"{file} is damaged"
        found[file.name] = _lasting(json.loads(content))
    return found


def _lasting(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in MEASURED}


def _of(record: Mapping[str, Any]) -> Iterable[str]:
    artifacts: dict[str, str] = record["artifacts"]
    return artifacts.values()


def _differing(
    what: str, expected: dict[str, Any] | None, got: dict[str, Any] | None
) -> Iterable[str]:
    if expected is None or got is None:
        yield f"{what}: {'is lost' if got is None else 'was not asked for'}"
        return
    for name, value in _flat(expected).items():
        other = _flat(got).get(name)
        if other != value:
            yield f"{what}: {name}: {other}, expected {value}"


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with each artifact by itself; of IRs what they mean is compared.

    Their text names frames of the worker, which depend on which job of a file came first.
    """
    artifacts = record["artifacts"].items()
    contents = {f"artifact {name}": blob for name, blob in artifacts if name not in record["ir"]}
    return {**record, "artifacts": sorted(record["artifacts"]), **contents}
