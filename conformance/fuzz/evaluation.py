"""Evaluation of programs: on two releases, in several modes, and by NumPy."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from conformance.fuzz import numpy_twin
from conformance.fuzz.batches import (
    PATIENCE,
    PERTURBED,
    BatchExecutor,
    PerturbedRuns,
    ProgramRun,
)
from conformance.fuzz.comparison import (
    Kind,
    ResultDifference,
    compare_results,
    compare_with_reference,
    compute_bounds,
)
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.engine.job import Executor, PlannedCell
    from conformance.fuzz.batches import ProgramResult, Results
    from conformance.fuzz.comparison import Bound
    from conformance.fuzz.program import FuzzProgram

RELEASE: Final = "release"
NUMPY: Final = "numpy"
PROCESS: Final = "process"
PLAIN: Final = "plain"
"""Mode that leaves the launch of a program out, see `conformance.fuzz.launch`."""
TURNS: Final[tuple[tuple[str, ...], ...]] = (
    (), ("vmap",), (), (), ("sharded",), (), (), ("eager",), (), ("export",), (), ("remat",), (),
)  # fmt: skip
"""Modes that must agree with `jit` on the newer release, for each program in turn."""
SAMPLES: Final = 5
"""Perturbed runs for an error bound."""
CONFIRMING_SAMPLES: Final = 16
"""Perturbed runs for the error bound of a finding."""
BOUNDED: Final = frozenset({Kind.VALUE, Kind.NAN, Kind.DENORMAL})
"""Kinds of differences that an error bound decides about."""
FAILURES: Final = {Outcome.CRASHED: Kind.CRASH, Outcome.TIMED_OUT: Kind.HANG}
"""Outcomes that are findings on every release. A host without memory is none."""
MISSING: Final = re.compile(
    r"has no attribute|No module named|cannot import name|unexpected keyword argument"
    r"|is not a valid|not supported by this release"
)
"""Messages about an operation, or an option of it, that a release does not have."""
_ABSENT: Final = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError", "TypeError"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """A difference that an oracle found.

    Attributes:
        oracle: `release`, `numpy`, the mode that differs from `jit` on the newer release, or
            `process` for a program that crashes or hangs.
        difference: The difference.
    """

    oracle: str
    difference: ResultDifference


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The evaluation of a program.

    Attributes:
        outcome: Outcome on the newer release; `unsupported` if an operation is missing on either.
        divergences: Differences, those between the releases first.
        message: Error on the newer release, empty for none.
    """

    outcome: Outcome
    divergences: tuple[Divergence, ...] = ()
    message: str = ""


def is_missing(result: ProgramResult) -> bool:
    """Return whether a program failed because the release lacks an operation or an option."""
    return result.error in _ABSENT and MISSING.search(result.message) is not None


class Evaluator:
    """Evaluates programs on two releases.

    Args:
        executor: Executes the jobs.
        older: Cell of the older release.
        newer: Cell of the newer release; equal to `older` to compare a release with itself.
    """

    def __init__(self, executor: Executor, older: PlannedCell, newer: PlannedCell) -> None:
        self.executor = executor
        self.older = older
        self.newer = newer

    def evaluate(self, programs: Sequence[FuzzProgram]) -> list[Evaluation]:
        """Evaluate programs, many in one process.

        Args:
            programs: Programs with equal settings.
        """
        modes = [choose_mode(program, number) for number, program in enumerate(programs)]
        newer = [
            ProgramRun(program=program, modes=("jit", *mode))
            for program, mode in zip(programs, modes, strict=True)
        ]
        older = [ProgramRun(program=program) for program in programs]
        batches = BatchExecutor(self.executor)
        results = batches.run({"older": (self.older, older), "newer": (self.newer, newer)})
        found = [
            self._compare(program, a["jit"], b, None)
            for program, a, b in zip(programs, results["older"], results["newer"], strict=True)
        ]
        doubtful = [number for number, each in enumerate(found) if needs_bound(each)]
        perturbed = [programs[number] for number in doubtful]
        bounds = run_perturbed(perturbed, self.newer, SAMPLES, batches)
        for number, runs in zip(doubtful, bounds, strict=True):
            a, b = results["older"][number], results["newer"][number]
            found[number] = self._compare(programs[number], a["jit"], b, runs)
        return found

    def confirm(
        self, program: FuzzProgram, oracle: str, patience: float = PATIENCE
    ) -> Divergence | None:
        """Evaluate one program with one oracle again, in processes of its own.

        Args:
            program: The program.
            oracle: The oracle that found a difference.
            patience: Seconds after which a process hangs.
        """
        modes = choose_modes(oracle)
        batches = BatchExecutor(self.executor, size=1, patience=patience)
        work = {"newer": (self.newer, [ProgramRun(program=program, modes=modes)])}
        if oracle == RELEASE:
            work["older"] = (self.older, [ProgramRun(program=program)])
        results = batches.run(work)
        b = results["newer"][0]
        a = results["older"][0]["jit"] if oracle == RELEASE else b["jit"]
        found = self._compare(program, a, b, None)
        if needs_bound(found):
            (runs,) = run_perturbed([program], self.newer, CONFIRMING_SAMPLES, batches)
            found = self._compare(program, a, b, runs)
        return next((each for each in found.divergences if each.oracle == oracle), None)

    def _compare(
        self,
        program: FuzzProgram,
        a: ProgramResult,
        b: Results,
        perturbed: PerturbedRuns | None,
    ) -> Evaluation:
        """Compare the results of a program.

        Args:
            program: The program.
            a: Its result on the older release.
            b: Its results on the newer release.
            perturbed: Its perturbed runs, None if numbers must be equal bit by bit.
        """
        new = b["jit"]
        if is_missing(a) or is_missing(new):
            return Evaluation(outcome=Outcome.UNSUPPORTED, message=new.message or a.message)
        bounds: Sequence[Bound] = ()
        unbounded = False
        if perturbed is not None and new.outcome is Outcome.OK:
            computed = compute_bounds(perturbed, new)
            unbounded, bounds = computed is None, computed or ()
        found = []
        if (difference := compare_results(a, new, bounds)) is not None:
            found.append(Divergence(oracle=RELEASE, difference=difference))
        elif (failure := find_failure(new)) is not None:
            found.append(Divergence(oracle=PROCESS, difference=failure))
        if new.outcome is Outcome.OK:
            for mode in b:
                # What a mode does not support is no difference in behaviour.
                if mode == "jit" or b[mode].error == "NotImplementedError":
                    continue
                difference = compare_results(new, b[mode], bounds, same_release=True)
                if difference is not None:
                    found.append(Divergence(oracle=mode, difference=difference))
            found += compare_with_numpy(program, new)
        if unbounded:
            # In 64 bits the program is another one, e.g. because it fails: nothing can be said.
            found = [each for each in found if each.difference.kind not in BOUNDED]
        return Evaluation(outcome=new.outcome, divergences=tuple(found), message=new.signature)


def run_perturbed(
    programs: Sequence[FuzzProgram], cell: PlannedCell, samples: int, batches: BatchExecutor
) -> list[PerturbedRuns]:
    """Run programs with perturbed steps.

    Args:
        programs: The programs.
        cell: Cell to run them in.
        samples: Number of perturbed runs of each kind.
        batches: Runs them.
    """
    if not programs:
        return []
    mode = f"{PERTURBED} {samples}"
    runs = [ProgramRun(program=program, modes=(mode,)) for program in programs]
    found = batches.run({mode: (cell, runs)})[mode]
    return [_split_runs(results[mode], samples + 1) for results in found]


def _split_runs(result: ProgramResult, count: int) -> PerturbedRuns:
    """Return the runs of a result, which has the leaves of so many of each kind."""
    size = len(result.leaves) // (2 * count)
    runs = [
        replace(result, leaves=result.leaves[number * size : (number + 1) * size])
        for number in range(2 * count)
    ]
    return PerturbedRuns(wide=tuple(runs[:count]), own=tuple(runs[count:]))


def compare_with_numpy(program: FuzzProgram, result: ProgramResult) -> list[Divergence]:
    """Return the difference between a result and that of NumPy, if there is one.

    Args:
        program: The program.
        result: Its result, which ended well.
    """
    reference = numpy_twin.compute_reference(program, result)
    difference = reference and compare_with_reference(result, reference)
    return [Divergence(oracle=NUMPY, difference=difference)] if difference else []


def find_failure(result: ProgramResult) -> ResultDifference | None:
    """Return how the process of a program failed, None if the program ended or raised."""
    kind = FAILURES.get(result.outcome)
    if kind is None:
        return None
    return ResultDifference(kind=kind, detail=result.signature, example=result.message)


def choose_modes(oracle: str) -> tuple[str, ...]:
    """Return the modes that an oracle compares on one release."""
    return ("jit",) if oracle in {RELEASE, NUMPY, PROCESS} else ("jit", oracle)


def choose_mode(program: FuzzProgram, number: int) -> tuple[str, ...]:
    """Return the modes of a program in addition to `jit`.

    Args:
        program: The program.
        number: Its number, by which modes take turns.
    """
    # A program with a mesh of its own, or an exported one, does not run in each mode.
    # The same in small steps takes three times as long as `jit`.
    modes = TURNS[number % len(TURNS)]
    if program.launch:
        return (PLAIN,) if modes else ()
    if modes == ("vmap",) and not program.inputs:
        return ()
    if program.devices > 1 or any(one.name == "export" for one in program.transforms):
        return modes if modes == ("eager",) else ()
    return modes


def needs_bound(evaluation: Evaluation) -> bool:
    """Return whether an error bound must decide about a difference of numbers."""
    return any(
        each.difference.kind in BOUNDED and each.oracle != NUMPY for each in evaluation.divergences
    )
