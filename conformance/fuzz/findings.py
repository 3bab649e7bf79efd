"""Findings: a divergence shrunk to its root, confirmed, dated, and compared with what is known."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.fuzz.batches import BatchExecutor, ProgramRun
from conformance.fuzz.comparison import Kind, compare_results, compute_bounds
from conformance.fuzz.evaluation import (
    BOUNDED,
    CONFIRMING_SAMPLES,
    NUMPY,
    PROCESS,
    RELEASE,
    choose_modes,
    compare_with_numpy,
    find_failure,
    is_missing,
    split_runs,
)
from conformance.fuzz.generation import shrink
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.engine.job import Executor, PlannedCell
    from conformance.fuzz.batches import ProgramResult
    from conformance.fuzz.comparison import ResultDifference
    from conformance.fuzz.evaluation import Divergence, Evaluator
    from conformance.fuzz.generation import GeneratedProgram
    from conformance.fuzz.program import FuzzProgram
    from conformance.fuzz.strategies import ProgramSpace

SHRINKING: Final = 60.0
"""Seconds to shrink one program."""
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A difference that fuzzing discovered, shrunk and dated.

    Attributes:
        id: Hash of its root.
        oracle: Oracle that found it, see `conformance.fuzz.evaluation.Divergence`.
        kind: Kind of the difference, see `conformance.fuzz.comparison.Kind`.
        detail: The difference in a sentence.
        example: An example with numbers.
        operations: Operations of the shrunk program.
        transforms: Transforms of the shrunk program, the innermost first, and its launch.
        releases: Releases at which the result changes; for another oracle than `release` those
            that show the difference.
        known: Case that shows the same change, empty for none.
        script: The shrunk program.
        choices: Choices of Hypothesis for it, in hexadecimal.
        x64: Whether it runs with 64-bit types enabled.
        programs: Ids of the programs that showed it.
    """

    id: str
    oracle: str
    kind: str
    detail: str
    example: str
    operations: tuple[str, ...]
    transforms: tuple[str, ...]
    releases: tuple[str, ...] = ()
    known: str = ""
    script: str
    choices: str
    x64: bool = False
    programs: tuple[str, ...] = ()

    def covers(self, program: FuzzProgram, divergence: Divergence) -> bool:
        """Return whether a program most likely diverges for the reason of this finding.

        Args:
            program: A program that diverges.
            divergence: How it diverges.
        """
        return (
            (self.oracle, self.kind) == (divergence.oracle, str(divergence.difference.kind))
            and {*self.operations} <= program.operations
            and {*self.transforms} <= {*program.around}
        )


def has_same_root(a: Finding, b: Finding) -> bool:
    """Return whether two findings most likely have one cause, whatever their operations.

    Shardings of results are decided by the transforms: operations are only what is sharded. An
    error is known by its message.

    Args:
        a: A dated finding.
        b: Another one.
    """
    if (a.oracle, a.kind, a.releases) != (b.oracle, b.kind, b.releases):
        return False
    if a.kind == Kind.SHARDING:
        around = [{*each.transforms} - {"jit"} for each in (a, b)]
        return around[0] == around[1]
    return a.kind in {Kind.OUTCOME, Kind.ERROR} and a.detail == b.detail


def make_finding(
    evaluator: Evaluator,
    space: ProgramSpace,
    generated: GeneratedProgram,
    divergence: Divergence,
) -> Finding | None:
    """Confirm a divergence and shrink its program.

    Args:
        evaluator: Evaluates programs.
        space: The programs that it was drawn from.
        generated: The program.
        divergence: How it diverges.

    Returns:
        The finding, not dated; None if the divergence is not seen again.
    """
    oracle, kind = divergence.oracle, divergence.difference.kind

    def observe(program: FuzzProgram) -> ResultDifference | None:
        found = evaluator.confirm(program, oracle)
        return found.difference if found and found.difference.kind is kind else None

    if observe(generated.program) is None:
        return None
    shrunk = shrink(space, generated, lambda program: observe(program) is not None, SHRINKING)
    difference = observe(shrunk.program) or divergence.difference
    operations = tuple(sorted(shrunk.program.operations))
    transforms = shrunk.program.around
    root = f"{oracle} {kind} {operations} {transforms} {difference.detail}"
    return Finding(
        id=hashlib.sha256(root.encode()).hexdigest()[:10],
        oracle=oracle,
        kind=str(kind),
        detail=difference.detail,
        example=difference.example,
        operations=operations,
        transforms=transforms,
        script=shrunk.program.render(),
        choices=shrunk.choices.hex(),
        x64=space.x64,
        programs=(generated.program.id,),
    )


def date(
    finding: Finding, program: FuzzProgram, executor: Executor, cells: Sequence[PlannedCell]
) -> tuple[str, ...]:
    """Return the releases of a finding, see `Finding.releases`.

    Args:
        finding: The finding.
        program: Its shrunk program.
        executor: Executes the jobs.
        cells: Cells of all releases of the campaign, the oldest first.
    """
    modes = choose_modes(finding.oracle)
    run = BatchExecutor(executor).run
    work = {cell.release: (cell, [ProgramRun(program=program, modes=modes)]) for cell in cells}
    results = {release: found[0] for release, found in run(work).items()}
    perturbed: list[ProgramResult] | None = None
    if finding.kind in {str(kind) for kind in BOUNDED} and finding.oracle != NUMPY:
        mode = f"perturbed {CONFIRMING_SAMPLES}"
        newest = {"bounds": (cells[-1], [ProgramRun(program=program, modes=(mode,))])}
        perturbed = split_runs(run(newest)["bounds"][0][mode], CONFIRMING_SAMPLES + 1)
    if finding.oracle == PROCESS:
        return tuple(r for r, each in results.items() if find_failure(each["jit"]) is not None)
    if finding.oracle == RELEASE:
        return tuple(_find_changes({r: each["jit"] for r, each in results.items()}, perturbed))
    return tuple(
        release
        for release, each in results.items()
        if each["jit"].outcome is Outcome.OK and _differs(finding, program, each, perturbed)
    )


def _find_changes(
    results: Mapping[str, ProgramResult], perturbed: Sequence[ProgramResult] | None
) -> Iterable[str]:
    last: ProgramResult | None = None
    for release, result in results.items():
        if is_missing(result):
            continue
        bounds = compute_bounds(perturbed, result) if perturbed else ()
        if last is not None and compare_results(last, result, bounds or ()) is not None:
            yield release
        last = result


def _differs(
    finding: Finding,
    program: FuzzProgram,
    results: Mapping[str, ProgramResult],
    perturbed: Sequence[ProgramResult] | None,
) -> bool:
    result = results["jit"]
    if finding.oracle == NUMPY:
        return bool(compare_with_numpy(program, result))
    bounds = compute_bounds(perturbed, result) if perturbed else ()
    other = results[finding.oracle]
    return compare_results(result, other, bounds or (), same_release=True) is not None


def find_known(finding: Finding, changes: Iterable[BehaviourChange]) -> str:
    """Return the case of a change in the history that mentions the finding, empty for none.

    A change is taken for the same if it is of one of the finding's releases and names all of its
    operations, or one of them and a transform.

    Args:
        finding: A dated finding.
        changes: Changes of the history.
    """
    operations = {name.rpartition(".")[2].strip("[]") for name in finding.operations}
    transforms = {name.partition("(")[0] for name in finding.transforms}
    for change in changes:
        if change.release not in finding.releases:
            continue
        words = {*_WORD.findall(change.summary)}
        named = operations & words
        if named == operations or (named and transforms & words):
            return change.cases[0]
    return ""
