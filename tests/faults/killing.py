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
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.directory import RESULTS, RUN
from conformance.files import TEMPORARY
from conformance.model.outcome import ExitCode
from tests.cluster.processes import Cluster
from tests.projects import ROOT
from tests.waiting import PATIENCE

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
"""Cases that run a second time before they are reported, and some slow enough to be killed."""
VICTIMS: Final = ("orchestrator", "job", "fork server")
CLUSTER_VICTIMS: Final = ("client", "worker", "nanny", "scheduler")
"""The same for a run on a cluster; its client is the orchestrator."""
MEASURED: Final = ("seconds", "max_rss_bytes", "attempts", "cached", "notes")
"""Fields of a record that differ between two runs of the same job."""
GONE: Final = 60.0
"""Seconds within which every process must end: a worker notices only after importing jax."""
MARK: Final = "TMPDIR"
"""Variable that identifies the processes of a run: workers inherit it, and each run has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of one trial.

    Attributes:
        victim: Kind of process to kill, one of `VICTIMS` or `CLUSTER_VICTIMS`.
        moment: Seconds after the start of the run.
        killed: Whether such a process was found and killed.
        recorded: Number of jobs recorded at that moment.
        resumed: Number of resumptions until the run ended.
        problems: Differences from an undisturbed run; empty if the trial passed.
    """

    victim: str
    moment: float
    killed: bool
    recorded: int
    resumed: int
    problems: tuple[str, ...] = ()


@dataclass(slots=True)
class Trials:
    """Trials with one project, each in a separate folder.

    Attributes:
        folder: Folder of project and trials, preferably on the disk of the package cache.
        cells: Selectors of the cells.
        cases: Files and folders of cases, in the project.
        envs: Environments for trials that do not provision them; None provisions them first.
        clustered: Whether trials run on a cluster; the undisturbed run is on this host.
        whole: Records of the undisturbed run, by job.
        kept: Result cache of the undisturbed run, by file.
        seconds: Duration of the undisturbed run.
    """

    folder: Path
    cells: tuple[str, ...] = CELLS
    cases: tuple[str, ...] = CASES
    envs: Path | None = None
    clustered: bool = False
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
            self._run_undisturbed("making")
        self.seconds = self._run_undisturbed("whole")

    def _run_undisturbed(self, name: str) -> float:
        """Run without a fault, store records and cache, and return the seconds."""
        trial = _Trial(self, self.folder / name)
        start = time.monotonic()
        code, errors = trial.finish(trial.start(*self._run_arguments()))
        seconds = time.monotonic() - start
        assert code == 1, errors
        self.whole, self.kept = _read_records(trial.run), _read_cache(trial.cache)
        trial.remove()
        return seconds

    def _run_arguments(self) -> tuple[str, ...]:
        return (*self.cases, *(word for cell in self.cells for word in ("--cell", cell)))

    def run_trial(
        self, number: int, victim: str, moment: float, *, making: bool = False
    ) -> TrialResult:
        """Kill something at some moment, resume, and compare.

        Args:
            number: Number of the trial.
            victim: Kind of process to kill, one of `VICTIMS` or `CLUSTER_VICTIMS`.
            moment: Moment of the kill, as a fraction of the undisturbed duration.
            making: Whether this trial provisions the environments.
        """
        trial = _Trial(
            self, self.folder / f"trial-{number}", making=making, clustered=self.clustered
        )
        at = moment * self.seconds
        process = trial.start(*self._run_arguments())
        end = time.monotonic() + at
        while process.poll() is None and time.monotonic() < end:
            time.sleep(0.002)
        killed = trial.kill(process, victim, random.Random(number))  # noqa: S311 - as before
        recorded = trial.recorded
        code, errors = trial.finish(process)
        problems = list(trial.find_leftovers(errors))
        resumed = 0
        # A run on a cluster ends with an error if the scheduler goes away.
        while (code < 0 or code == ExitCode.INFRA) and resumed < 3:
            resumed += 1
            more = ("--resume",) if (trial.run / RUN).exists() else self._run_arguments()
            code, errors = trial.finish(trial.start(*more))
            problems += trial.find_leftovers(errors)
        problems += [] if code == 1 else [f"exit status {code}, expected 1: {errors}"]
        problems += trial.find_differences()
        if not problems:
            trial.remove()
        return TrialResult(
            victim=victim, moment=at, killed=killed, recorded=recorded, resumed=resumed,
            problems=tuple(problems),
        )  # fmt: skip


class _Trial:
    """One run with a new cache and a new folder for temporary files."""

    def __init__(
        self, trials: Trials, folder: Path, *, making: bool = False, clustered: bool = False
    ) -> None:
        self._trials = trials
        self.folder = folder
        self.run = folder / "run"
        self.cache = folder / "cache"
        self._scratch = folder / "tmp"
        self.cache.mkdir(parents=True)
        self._scratch.mkdir()
        if not making and trials.envs is not None:
            (self.cache / "envs").symlink_to(trials.envs)
        self._clustered = clustered
        self._cluster: Cluster | None = None

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `conformance run`, and before it a cluster if it runs on one."""
        if self._clustered:
            # Its files are not those of the run, which leaves none.
            (self.folder / "dask").mkdir(exist_ok=True)
            self._cluster = Cluster(self.folder / "dask", self.cache)
            self._cluster.start_scheduler()
            for _ in range(2):
                self._cluster.start_worker()
            arguments = (*arguments, "--scheduler", self._cluster.address)
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
        """Wait for the end; return the exit status and standard error."""
        _, errors = process.communicate(timeout=PATIENCE)
        if self._cluster is not None:
            self._cluster.close()
        return process.returncode, errors

    @property
    def recorded(self) -> int:
        """Number of recorded jobs."""
        file = self.run / RESULTS
        return file.read_bytes().count(b"\n") if file.exists() else 0

    def kill(self, process: subprocess.Popen[str], victim: str, chance: random.Random) -> bool:
        """Kill a process of the run as soon as one exists; return whether one did."""
        while process.poll() is None:
            found = self._find_victims(process.pid, victim)
            if found:
                try:
                    chance.choice(found).kill()
                except psutil.NoSuchProcess:
                    continue
                return True
            time.sleep(0.002)
        return False

    def _find_victims(self, orchestrator: int, victim: str) -> list[psutil.Process]:
        cluster = self._cluster
        if cluster is None or victim == "client":
            return _find_victims(orchestrator, "orchestrator" if cluster else victim)
        if victim == "worker":
            return cluster.find_workers()
        scheduler, *nannies = (psutil.Process(one.pid) for one in cluster.processes)
        return [scheduler] if victim == "scheduler" else nannies

    def find_leftovers(self, errors: str) -> Iterable[str]:
        """Yield a traceback, and the processes that outlive the run."""
        if "Traceback" in errors:
            yield errors
        end = time.monotonic() + GONE
        while (alive := _find_marked_processes(str(self._scratch))) and time.monotonic() < end:
            time.sleep(0.05)
        for one in alive:
            yield f"process {one.pid} is left: {' '.join(one.cmdline())[:200]}"

    def find_differences(self) -> Iterable[str]:
        """Yield the differences between this run and the undisturbed one."""
        lines = [json.loads(line) for line in (self.run / RESULTS).read_bytes().splitlines()]
        jobs = [(line["case"], line["cell"]) for line in lines]
        yield from (f"{job} is recorded twice" for job in set(jobs) if jobs.count(job) > 1)
        seen = _read_records(self.run)
        for job in sorted(self._trials.whole.keys() | seen.keys()):
            yield from _compare(str(job), self._trials.whole.get(job), seen.get(job))
        kept = _read_cache(self.cache)
        for name in sorted(self._trials.kept.keys() & kept.keys()):
            yield from _compare(f"cached {name}", self._trials.kept[name], kept[name])
        for name in sorted(kept.keys() - self._trials.kept.keys()):
            yield f"cached {name}, which an undisturbed run does not keep"
        yield from self._broken(
            self.run, (hash_ for one in seen.values() for hash_ in _artifact_hashes(one))
        )
        yield from self._broken(
            self.cache, (hash_ for one in kept.values() for hash_ in _artifact_hashes(one))
        )
        for path in self.folder.rglob(f"{TEMPORARY}*"):
            yield f"{path} is left"
        for path in self._scratch.iterdir():
            yield f"{path} is left"

    def _broken(self, folder: Path, hashes: Iterable[str]) -> Iterable[str]:
        blobs = BlobStore(folder / "blobs")
        for name in set(hashes):
            try:
                blobs.get(name)
            except Exception as error:  # noqa: BLE001 - any error is reported
                yield f"{folder.name}: {error}"

    def remove(self) -> None:
        """Remove the folder of the trial."""
        shutil.rmtree(self.folder)


def _find_victims(orchestrator: int, victim: str) -> list[psutil.Process]:
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


def _find_marked_processes(mark: str) -> list[psutil.Process]:
    found = []
    for one in psutil.process_iter():
        try:
            if one.environ().get(MARK) == mark and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
        except psutil.Error:
            continue
    return found


def _read_records(run: Path) -> dict[tuple[str, str], dict[str, Any]]:
    records = (json.loads(line) for line in (run / RESULTS).read_bytes().splitlines())
    return {(one["case"], one["cell"]): _stable_fields(one) for one in records}


def _read_cache(cache: Path) -> dict[str, dict[str, Any]]:
    entries = CacheFolder(cache / "results")
    found = {}
    for file in entries.folder.glob("*/*/*.json"):
        content = entries.read(file)
        assert content is not None, f"{file} is damaged"
        found[file.name] = _stable_fields(json.loads(content))
    return found


def _stable_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in MEASURED}


def _artifact_hashes(record: Mapping[str, Any]) -> Iterable[str]:
    artifacts: dict[str, str] = record["artifacts"]
    return artifacts.values()


def _compare(
    what: str, expected: dict[str, Any] | None, got: dict[str, Any] | None
) -> Iterable[str]:
    if expected is None or got is None:
        yield f"{what}: {'is lost' if got is None else 'was not asked for'}"
        return
    for name, value in _flatten(expected).items():
        other = _flatten(got).get(name)
        if other != value:
            yield f"{what}: {name}: {other}, expected {value}"


def _flatten(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with its artifacts as fields, and IRs by their canonical form.

    The text of an IR names frames of the worker, which depend on which job of a file came first.
    """
    artifacts = record["artifacts"].items()
    contents = {f"artifact {name}": blob for name, blob in artifacts if name not in record["ir"]}
    return {**record, "artifacts": sorted(record["artifacts"]), **contents}
