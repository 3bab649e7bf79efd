"""Digests of runs: the small files from which a history over many runs is made."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from conformance.cache_folder import CacheFolder
from conformance.compression import compress, decompress
from conformance.engine.process_pool import map_in_processes
from conformance.engine.runs.directory import RESULTS, RUN, CorruptRunError, RunDirectory
from conformance.files import MALFORMED, describe_os_error
from conformance.judge.errors import normalise_cause
from conformance.model.outcome import (
    Conformance,
    Outcome,
    Verdict,
    is_conclusive,
    is_unexpected,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from conformance.engine.runs.directory import RunDirectory


LONGEST: Final = 2000
"""Characters of a reason that are stored."""
WHOLE: Final = "1/1"
"""Number of the only shard of an undivided run."""
_INDEX: Final = np.dtype("<u4")
FORMAT: Final = 1
"""Version of the files; a file of another version is rebuilt."""
_CHUNK: Final = 4
"""Runs that a process gets at once."""


# As arrays, without the names of fields: a history reads the digests of thousands of runs.
class JobState(msgspec.Struct, frozen=True, array_like=True):
    """The state of a job; most jobs of a run share a few states.

    Attributes:
        verdict: Verdict of the job.
        outcome: Outcome of the job.
        conformance: Conformance to the reference.
        reason: First reason of an unexpected job, else the signature of its error.
        cause: The reason, normalised such that it is the same from run to run.
    """

    verdict: Verdict
    outcome: Outcome
    conformance: Conformance
    reason: str = ""
    cause: str = ""

    @property
    def unexpected(self) -> bool:
        """Whether the job makes its run fail."""
        return is_unexpected(self.verdict, self.conformance)

    @property
    def is_conclusive(self) -> bool:
        """Whether the job was observed and judged."""
        return is_conclusive(self.verdict, self.outcome)


def make_regression_id(case: str, verdict: str, cause: str) -> str:
    """Return the id of a regression, which depends on case, verdict and cause only.

    Args:
        case: Case id.
        verdict: Verdict of its jobs.
        cause: Normalised cause of its states.
    """
    # Without the run or the cell: the regression is the same in every run and on every release.
    text = f"{case}\0{verdict}\0{cause}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:16]


class Digest(msgspec.Struct, frozen=True, array_like=True):
    """The part of a run that a history needs.

    Attributes:
        run: Id of the run.
        started: Start, ISO 8601.
        finished: End, empty if it did not end.
        exit: Exit status, None if it did not end.
        matrix: Name or file of the matrix.
        part: Selection of the matrix, empty for the whole matrix.
        cases: Case ids.
        cells: Cell ids.
        releases: Release of jax in each cell, empty if unknown.
        states: Distinct states of jobs.
        grid: `uint32[cases, cells]`, the number of each job's state in `states` from 1, else 0.
    """

    run: str
    started: str = ""
    finished: str = ""
    exit: int | None = None
    matrix: str = ""
    part: str = ""
    cases: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    releases: tuple[str, ...] = ()
    states: tuple[JobState, ...] = ()
    grid: bytes = b""

    @property
    def table(self) -> NDArray[np.uint32]:
        """The grid, a row for each case and a column for each cell."""
        return np.frombuffer(self.grid, _INDEX).reshape(len(self.cases), len(self.cells))

    @property
    def jobs(self) -> dict[tuple[str, str], JobState]:
        """The state of every job, by case and cell."""
        table = self.table
        return {
            (self.cases[row], self.cells[column]): self.states[table[row, column] - 1]
            for row, column in np.argwhere(table).tolist()
        }

    @property
    def counts(self) -> dict[Verdict, int]:
        """Number of jobs by verdict, in the order of the verdicts."""
        found: Counter[Verdict] = Counter()
        for state, number in self._count_jobs_by_state():
            found[state.verdict] += number
        return {verdict: found[verdict] for verdict in Verdict if found[verdict]}

    @property
    def unexpected_count(self) -> int:
        """Number of jobs that make the run fail."""
        return sum(number for state, number in self._count_jobs_by_state() if state.unexpected)

    def _count_jobs_by_state(self) -> Iterator[tuple[JobState, int]]:
        numbers = np.bincount(self.table.reshape(-1), minlength=len(self.states) + 1)
        return zip(self.states, numbers[1:].tolist(), strict=True)


class _Versions(msgspec.Struct):
    jax: str = ""


class _Cell(msgspec.Struct):
    id: str
    versions: _Versions = msgspec.field(default_factory=_Versions)


class _Request(msgspec.Struct):
    select: tuple[str, ...] = ()
    cell: tuple[str, ...] = ()
    shard: str = WHOLE

    @property
    def part(self) -> str:
        shard = () if self.shard == WHOLE else (f"shard {self.shard}",)
        return ", ".join((*self.select, *self.cell, *shard))


class _Info(msgspec.Struct):
    """The part of `run.json` that is read."""

    request: _Request = msgspec.field(default_factory=_Request)
    started: str = ""
    finished: str = ""
    exit: int | None = None
    matrix: str = ""
    cells: tuple[_Cell, ...] = ()
    plan: tuple[msgspec.Raw, ...] = ()


# `gc=False`: tens of thousands of records without cycles, which the collector need not visit.
class _Error(msgspec.Struct, frozen=True, gc=False):
    signature: str = ""


class _Job(msgspec.Struct, frozen=True, gc=False):
    """The part of a line of `results.jsonl` that is decoded."""

    case: str
    cell: str
    outcome: Outcome
    conformance: Conformance = Conformance.UNKNOWN
    verdict: Verdict = Verdict.NEW
    reasons: tuple[str, ...] = ()
    error: _Error | None = None


def make_digest(directory: RunDirectory) -> Digest:
    """Return the digest of a run, read from its directory.

    Args:
        directory: Directory of the run.

    Raises:
        CorruptRunError: If it cannot be read, or is no run directory.
    """
    info = directory.read_run_as(_Info)
    # Results are only appended to: of a job with several records, the last one counts.
    jobs = {(job.case, job.cell): job for job in directory.read_records_as(_Job)}
    if not jobs and not info.plan:
        raise CorruptRunError(f"{directory.path}: expected a run, got a folder without any job")
    cases = {name: at for at, name in enumerate(sorted({case for case, _ in jobs}))}
    cells = {name: at for at, name in enumerate(sorted({cell for _, cell in jobs}))}
    release = {cell.id: cell.versions.jax for cell in info.cells}
    known: dict[tuple[object, ...], int] = {}
    states: dict[JobState, int] = {}
    # 0 is no job. Two tables of numbers, because normalising a cause takes longer than a lookup.
    table = np.zeros((len(cases), len(cells)), _INDEX)
    for job in jobs.values():
        key = (job.verdict, job.outcome, job.conformance, *_find_reason(job))
        if key not in known:
            known[key] = states.setdefault(_make_state(job), len(states) + 1)
        table[cases[job.case], cells[job.cell]] = known[key]
    return Digest(
        run=directory.id,
        started=info.started,
        finished=info.finished,
        exit=info.exit,
        matrix=info.matrix,
        part=info.request.part,
        cases=tuple(cases),
        cells=tuple(cells),
        releases=tuple(release.get(cell, "") for cell in cells),
        states=tuple(states),
        grid=table.tobytes(),
    )


def _find_reason(job: _Job) -> tuple[str, str]:
    """Return the first reason and the signature of an unexpected job, else empty texts."""
    if not is_unexpected(job.verdict, job.conformance):
        return "", ""
    return job.reasons[0] if job.reasons else "", job.error.signature if job.error else ""


def _make_state(job: _Job) -> JobState:
    reason, signature = _find_reason(job)
    text = reason or signature
    return JobState(
        verdict=job.verdict,
        outcome=job.outcome,
        conformance=job.conformance,
        reason=text[:LONGEST],
        cause=normalise_cause(text),
    )


class _DigestFile(msgspec.Struct, frozen=True, array_like=True):
    """The content of a digest file, with the format and the stamps that validate it."""

    format: int
    key: tuple[int, ...]
    digest: Digest


class DigestStore:
    """A cache of digests.

    Args:
        folder: Folder of the cache.
        processes: Number of processes that make missing digests.
    """

    def __init__(self, folder: Path, processes: int = 1) -> None:
        self._entries = CacheFolder(folder)
        self._processes = processes

    def get(self, directory: RunDirectory) -> Digest:
        """Return the digest of a run, made now if the cache has no valid one.

        Args:
            directory: Directory of the run.

        Raises:
            CorruptRunError: If it cannot be read, or is no run directory.
        """
        # Before the run is read: a run that is still growing must not match its stamps later.
        key = tuple(_read_stamps(directory))
        path = self._path(directory)
        cached = _decode(self._entries.read(path))
        if cached is not None and (cached.format, cached.key) == (FORMAT, key):
            return cached.digest
        digest = make_digest(directory)
        cached = _DigestFile(format=FORMAT, key=key, digest=digest)
        self._entries.write(path, compress(msgspec.msgpack.encode(cached)))
        return digest

    def get_all(
        self, directories: Sequence[RunDirectory]
    ) -> tuple[dict[RunDirectory, Digest], list[str]]:
        """Return the digests of all readable runs, and messages about the others.

        Args:
            directories: Directories of the runs.

        Returns:
            The digest of each run in the given order, and a message about each run that cannot be
            read.
        """
        new = sum(not self._path(directory).exists() for directory in directories)
        with map_in_processes(
            self._try_get, directories, processes=self._processes, new=new, chunk=_CHUNK
        ) as tried:
            results = dict(zip(directories, tried, strict=True))
        digests = {run: found for run, found in results.items() if isinstance(found, Digest)}
        return digests, [problem for problem in results.values() if isinstance(problem, str)]

    def _try_get(self, directory: RunDirectory) -> Digest | str:
        # A message, not the exception: it is pickled on its way from another process.
        try:
            return self.get(directory)
        except CorruptRunError as error:
            return str(error)

    def _path(self, directory: RunDirectory) -> Path:
        # Runs with the same name may be in several folders.
        name = str(directory.path.resolve()).encode("utf-8", "surrogateescape")
        return self._entries.folder / f"{hashlib.sha256(name).hexdigest()[:32]}.digest"


def _decode(content: bytes | None) -> _DigestFile | None:
    if content is None:
        return None
    try:
        return msgspec.msgpack.decode(decompress(content), type=_DigestFile)
    except MALFORMED:  # written by another version
        return None


def _read_stamps(directory: RunDirectory) -> Iterator[int]:
    """Yield size and modification time of the files that a digest is made from."""
    for name in (RUN, RESULTS):
        try:
            found = (directory.path / name).stat()
        except FileNotFoundError:  # a run without results yet
            yield from (-1, 0)
        except OSError as error:
            raise CorruptRunError(
                f"{directory.path / name}: cannot be read: {describe_os_error(error)}"
            ) from None
        else:
            yield from (found.st_size, found.st_mtime_ns)
