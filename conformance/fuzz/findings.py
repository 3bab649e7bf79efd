"""Findings: a divergence shrunk to its root, confirmed, dated, and compared with what is known."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import msgspec

from conformance.fuzz import numpy_twin
from conformance.fuzz.batches import PATIENCE, BatchExecutor, ProgramRun
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
    run_perturbed,
)
from conformance.fuzz.finding import Finding, ReleaseResult
from conformance.fuzz.result_text import render_result
from conformance.fuzz.shrinking import shrink
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from conformance.engine.job import Executor, PlannedCell
    from conformance.fuzz.batches import PerturbedRuns, ProgramResult, Results
    from conformance.fuzz.comparison import ResultDifference
    from conformance.fuzz.evaluation import Divergence, Evaluator
    from conformance.fuzz.generation import GeneratedProgram
    from conformance.fuzz.program import FuzzProgram

SHRINKING: Final = 120.0
"""Seconds to shrink one program."""
SHRINKING_HANGS: Final = 30.0
"""Seconds to shrink one that hangs: a trial that hangs takes the whole time limit of a program."""
HANG: Final = 30.0
"""Seconds after which a program hangs that exceeds the time limit of one."""


def make_finding(
    evaluator: Evaluator,
    generated: GeneratedProgram,
    divergence: Divergence,
) -> Finding | None:
    """Confirm a divergence and shrink its program.

    Args:
        evaluator: Evaluates programs.
        generated: The program.
        divergence: How it diverges.

    Returns:
        The finding, not dated; None if the divergence is not seen again.
    """
    oracle, kind = divergence.oracle, divergence.difference.kind

    def observe(program: FuzzProgram, patience: float = PATIENCE) -> ResultDifference | None:
        found = evaluator.confirm(program, oracle, patience)
        return found.difference if found and found.difference.kind is kind else None

    confirmed = observe(generated.program)
    if confirmed is None:
        return None
    # A program that is only slow ends within more time.
    seconds, patience = (SHRINKING_HANGS, HANG) if kind is Kind.HANG else (SHRINKING, PATIENCE)
    position = confirmed.position
    shrunk = shrink(generated, lambda program: observe(program) is not None, seconds, position)
    difference = observe(shrunk.program, patience)
    if difference is None and kind is Kind.HANG:
        return None
    if difference is None:
        shrunk, difference = generated, confirmed
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
        twin=shrunk.program.render_twin(perturbed=False),
        choices=shrunk.choices.hex(),
        x64=generated.space.x64,
        programs=(generated.program.id,),
    )


def date(
    finding: Finding, program: FuzzProgram, executor: Executor, cells: Sequence[PlannedCell]
) -> Finding:
    """Return a finding with its releases, and with the results of its program on each.

    A program that hangs on both ends runs on these alone.

    Args:
        finding: The finding.
        program: Its shrunk program.
        executor: Executes the jobs.
        cells: Cells of all releases of the campaign, the oldest first.
    """
    modes = choose_modes(finding.oracle)
    batches = BatchExecutor(executor)
    if (finding.oracle, finding.kind) == (PROCESS, Kind.HANG):
        cells = (cells[0], cells[-1])
    work = {cell.release: (cell, [ProgramRun(program=program, modes=modes)]) for cell in cells}
    results = {release: found[0] for release, found in batches.run(work).items()}
    perturbed: PerturbedRuns | None = None
    if finding.kind in {str(kind) for kind in BOUNDED} and finding.oracle != NUMPY:
        (perturbed,) = run_perturbed([program], cells[-1], CONFIRMING_SAMPLES, batches)
    kinds: list[str] = []
    last: ProgramResult | None = None
    for by_mode in results.values():
        result = by_mode["jit"]
        other = last if finding.oracle == RELEASE else by_mode.get(finding.oracle)
        kinds.append(_find_kind(finding, program, result, other, perturbed))
        if not is_missing(result):
            last = result
    shown = select_kinds(finding.kind, kinds)
    found = [
        _describe_release(release, finding, program, by_mode, differs=kind in shown)
        for (release, by_mode), kind in zip(results.items(), kinds, strict=True)
    ]
    releases = tuple(one.release for one in found if one.differs)
    return msgspec.structs.replace(finding, releases=releases, results=tuple(found))


def select_kinds(kind: str, found: Sequence[str]) -> frozenset[str]:
    """Return the kinds of differences between releases that show a finding.

    Other changes of the same result have other causes, such as roundings in another release than
    that of a NaN; but two releases can differ in no such way as the first and the last one do.

    Args:
        kind: Kind of the finding.
        found: Kind of the difference of each release, empty for none.
    """
    same = {kind, str(Kind.NAN)} if kind == Kind.VALUE else {kind}
    return frozenset(same & {*found} or {*found} - {""})


def _describe_release(
    release: str, finding: Finding, program: FuzzProgram, results: Results, *, differs: bool
) -> ReleaseResult:
    result, other = results["jit"], results.get(finding.oracle)
    missing = is_missing(result)
    right: bool | None = None
    if result.outcome is Outcome.OK and numpy_twin.compute_reference(program, result) is not None:
        right = not compare_with_numpy(program, result)
    return ReleaseResult(
        release=release,
        outcome=str(Outcome.UNSUPPORTED if missing else result.outcome),
        text=render_result(result),
        other=render_result(other) if other else "",
        differs=differs,
        right=right,
    )


def _find_kind(
    finding: Finding,
    program: FuzzProgram,
    result: ProgramResult,
    other: ProgramResult | None,
    perturbed: PerturbedRuns | None,
) -> str:
    """Return the kind of the difference by which a release may show a finding, empty for none.

    Args:
        finding: The finding.
        program: Its program.
        result: Its result on the release.
        other: The result to compare with: of the release before, or of the other mode.
        perturbed: Its perturbed runs, None if numbers must be equal bit by bit.
    """
    difference: ResultDifference | None = None
    if finding.oracle == PROCESS:
        difference = find_failure(result)
    elif is_missing(result):
        pass
    elif finding.oracle == NUMPY and result.outcome is Outcome.OK:
        difference = next((one.difference for one in compare_with_numpy(program, result)), None)
    elif other is not None and (finding.oracle == RELEASE or result.outcome is Outcome.OK):
        bounds = compute_bounds(perturbed, result) if perturbed else ()
        within = finding.oracle != RELEASE
        difference = compare_results(other, result, bounds or (), same_release=within)
    return str(difference.kind) if difference else ""
