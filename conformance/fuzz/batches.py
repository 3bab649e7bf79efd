"""Batches of generated programs: as jobs of workers, and the results of their programs."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from conformance.engine.job import FinishedJob, Job
from conformance.fuzz.program import RenderOptions
from conformance.judge.errors import drop_folders, make_signature
from conformance.model.case import Case
from conformance.model.outcome import Outcome
from conformance.model.value import to_python

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.engine.job import Executor, PlannedCell
    from conformance.fuzz.program import FuzzProgram
    from conformance.model.value import Leaf

FILE: Final = Path(__file__).with_name("inside") / "batch.py"
DEVICES: Final = 4
"""Devices of the process of a batch: the most that a program needs."""
SIGNATURE: Final = 100
"""Characters of a message that count: what follows quotes the program."""
TIMEOUT: Final = 120.0
"""Seconds of a batch of many programs."""
PATIENCE: Final = 10.0
"""Seconds of a program that runs alone."""
COSTLY_SHARE: Final = 6
"""One program with perturbed steps counts as so many in a batch: it takes about as long."""
PERTURBED: Final = "perturbed"
"""Mode that perturbs the steps of a program; a number of runs follows."""
_RUNNING: Final = re.compile(r"^program (\d+)$", re.MULTILINE)
_PATH: Final = re.compile(r"out\[(\d+)\]\['([^']*)'\]\['(value|error)'\]\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """A program and the modes to run it in.

    Attributes:
        program: The program.
        modes: Modes of `conformance.fuzz.inside.batch`.
    """

    program: FuzzProgram
    modes: tuple[str, ...] = ("jit",)

    @property
    def is_perturbed(self) -> bool:
        """Whether a mode perturbs its steps."""
        return any(mode.startswith(PERTURBED) for mode in self.modes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramResult:
    """The result of a program in one cell and mode.

    Attributes:
        outcome: Outcome.
        leaves: Leaves of its result; empty if it did not end well.
        error: Type of its error, empty for none.
        message: Message of its error.
    """

    outcome: Outcome = Outcome.OK
    leaves: tuple[Leaf, ...] = ()
    error: str = ""
    message: str = ""

    @property
    def signature(self) -> str:
        """Its error without what depends on the program; empty for none."""
        if not self.error:
            return ""
        # jax.errors.JaxRuntimeError, which jaxlib called XlaRuntimeError.
        kind = self.error.replace("XlaRuntimeError", "JaxRuntimeError")
        # An instruction of the compiled program is quoted with its number and location.
        text, _, _ = self.message.partition("\n")[0].partition("%")
        # Cut afterwards: `PartitionSpec(` and `P(` are one spelling in normal form.
        return make_signature(kind, text)[: len(kind) + SIGNATURE]


class PerturbedRuns(NamedTuple):
    """Results of a program with other roundings of its steps, the first one of each kind without.

    Attributes:
        wide: Results in 64 bits.
        own: Results in the dtypes of the program.
    """

    wide: tuple[ProgramResult, ...]
    own: tuple[ProgramResult, ...]


Results = dict[str, "ProgramResult"]
"""Results of a program by mode."""


def make_job(runs: Sequence[ProgramRun], planned: PlannedCell, patience: float = PATIENCE) -> Job:
    """Return the job of a batch of programs with equal settings.

    Args:
        runs: The programs.
        planned: Cell of the job.
        patience: Seconds of a program that runs alone.
    """
    x64 = runs[0].program.x64 or runs[0].is_perturbed
    programs = [_describe(run) for run in runs]
    name = hashlib.sha256(repr(programs).encode()).hexdigest()[:16]
    case = Case(
        id=f"fuzz/batch[{name}]", family="fuzz", topic="batch", name="batch", kind="probe",
        file=FILE, line=1, params={"programs": programs}, devices=DEVICES, x64=x64,
        timeout=TIMEOUT if len(runs) > 1 else patience, content_hash=_hash_file(),
    )  # fmt: skip
    return Job(case=case, planned=planned)


@cache
def _hash_file() -> str:
    return hashlib.sha256(FILE.read_bytes()).hexdigest()


def _describe(run: ProgramRun) -> dict[str, object]:
    source = run.program.render(RenderOptions(perturbed=run.is_perturbed))
    described: dict[str, object] = {"source": source, "modes": list(run.modes)}
    if run.is_perturbed:
        described["dtypes"] = run.program.dtypes
    return described


class BatchExecutor:
    """Runs programs in cells, many in one process; those of a process that dies are isolated.

    Args:
        executor: Executes the jobs of batches.
        size: Programs of a batch.
        patience: Seconds of a program that runs alone.
    """

    def __init__(self, executor: Executor, size: int = 50, *, patience: float = PATIENCE) -> None:
        self._executor = executor
        self._size = size
        self._patience = patience

    def run(
        self, work: Mapping[str, tuple[PlannedCell, Sequence[ProgramRun]]]
    ) -> dict[str, list[Results]]:
        """Run programs, and return their results by key in the order of the programs.

        Args:
            work: Cell and programs by key; programs of one key have equal settings.
        """
        results: dict[str, list[Results]] = {
            key: [{} for _ in runs] for key, (_, runs) in work.items()
        }
        open_ = [(key, numbers) for key, (_, runs) in work.items() for numbers in self._cut(runs)]
        while open_:
            jobs: dict[Job, tuple[str, list[int]]] = {}
            for key, numbers in open_:
                planned, runs = work[key]
                job = make_job([runs[number] for number in numbers], planned, self._patience)
                jobs[job] = (key, numbers)
            open_ = []
            for finished in self._executor.run(jobs):
                assert isinstance(finished, FinishedJob)  # noqa: S101 - see FinishedJobExecutor
                key, numbers = jobs[finished.job]
                runs = work[key][1]
                if finished.outcome is Outcome.OK:
                    for number, found in zip(numbers, split(finished, len(numbers)), strict=True):
                        results[key][number] = found
                elif len(numbers) > 1:
                    # All run again: the one that was running alone, and the others without it.
                    last = find_last_program(finished)
                    open_.append((key, [numbers[last]]))
                    open_.append((key, [*numbers[:last], *numbers[last + 1 :]]))
                else:
                    (number,) = numbers
                    results[key][number] = self._run_modes(runs[number], work[key][0], finished)
        return results

    def _cut(self, runs: Sequence[ProgramRun]) -> Iterator[list[int]]:
        """Yield the numbers of the programs of each batch."""
        size = self._size
        if runs and runs[0].is_perturbed:
            size = max(1, size // COSTLY_SHARE)
        for at in range(0, len(runs), size):
            yield [*range(at, min(at + size, len(runs)))]

    def _run_modes(self, run: ProgramRun, planned: PlannedCell, finished: FinishedJob) -> Results:
        """Return the results of a program that did not end well in one of several modes."""
        if len(run.modes) == 1:
            return {run.modes[0]: describe_ending(finished)}
        found: Results = {}
        for mode in run.modes:
            one = ProgramRun(program=run.program, modes=(mode,))
            found |= self.run({mode: (planned, [one])})[mode][0]
        return found


def find_last_program(finished: FinishedJob) -> int:
    """Return the number of the program that a batch was running when it ended, 0 if unknown."""
    found = _RUNNING.findall(finished.blobs.get("stdout", b"").decode("utf-8", "replace"))
    return int(found[-1]) if found else 0


def describe_ending(finished: FinishedJob) -> ProgramResult:
    """Return the result of a program whose process did not end well."""
    error = finished.error
    return ProgramResult(
        outcome=finished.outcome,
        error=error.type if error else str(finished.outcome),
        message=error.message if error else "",
    )


def split(finished: FinishedJob, count: int) -> Iterator[Results]:
    """Yield the results of each program of a batch that ended well.

    Args:
        finished: Job of the batch.
        count: Number of its programs.
    """
    leaves: dict[int, dict[str, dict[str, list[Leaf]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    for leaf in finished.values["value"].leaves:
        match = _PATH.fullmatch(leaf.path)
        assert match, leaf.path  # noqa: S101 - the case file writes no other paths
        leaves[int(match[1])][match[2]][match[3]].append(leaf)
    for number in range(count):
        yield {mode: _make_result(parts) for mode, parts in leaves[number].items()}


def _make_result(parts: Mapping[str, list[Leaf]]) -> ProgramResult:
    if "error" in parts:
        kind, message = map(to_python, parts["error"])
        # A campaign's log says nothing of the host.
        return ProgramResult(outcome=Outcome.RAISED, error=kind, message=drop_folders(message))
    return ProgramResult(leaves=tuple(parts["value"]))
