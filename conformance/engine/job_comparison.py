"""Comparison of two jobs: outcomes, errors, values and IRs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest
from typing import TYPE_CHECKING

from conformance.corpus.project import relative_to_project
from conformance.engine.cache.blobs import CorruptBlobError
from conformance.engine.record_judge import load_observation
from conformance.engine.runs.stored_job import StoredJob, select_informative_irs
from conformance.ir.change import IrDiff, Severity
from conformance.ir.graph import IrSyntaxError, kind_of_artifact
from conformance.ir.text_diff import IrText, diff_texts
from conformance.judge.agreement import is_same_error, make_recorded_error
from conformance.judge.conformance import describe_outcome
from conformance.judge.values import compare_values
from conformance.model.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from conformance.ir.change import Change
    from conformance.model.observation import Observation
    from conformance.model.record import IrRecord


class IrLevel(StrEnum):
    """The form in which IRs are compared."""

    EXACT = "exact"
    """The same instructions, grouped in the same way."""
    CANONICAL = "canonical"
    """The same work, however it is fused, called, copied or laid out."""

    @classmethod
    def _missing_(cls, value: object) -> IrLevel | None:
        # The names of the forms up to 0.1.0, which scripts may still give to `--level`.
        return {"structure": cls.EXACT, "neutral": cls.CANONICAL}.get(str(value))

    def equal(self, diff: IrDiff) -> bool:
        """Return whether two IRs are the same on this level."""
        return diff.equal or (self is IrLevel.CANONICAL and diff.neutral_equal)

    def select_changes(self, diff: IrDiff) -> tuple[Change, ...]:
        """Return the changes that count on this level."""
        if not self.equal(diff):
            return diff.changes
        return tuple(c for c in diff.changes if c.severity == Severity.SEMANTIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class IrComparison:
    """One IR of two jobs.

    Attributes:
        ir: The artifact, e.g. `hlo` or `stablehlo-tpu`; `A -> B` for two artifacts of one job.
        diff: The difference, None if they could not be compared.
        problem: Why they could not be compared.
        missing: Whether one of the jobs has no such IR.
    """

    ir: str
    diff: IrDiff | None = None
    problem: str = ""
    missing: bool = False

    def equal(self, level: IrLevel) -> bool:
        """Return whether the IRs are equal; IRs that could not be compared are not."""
        return self.diff is not None and level.equal(self.diff)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobComparison:
    """Two jobs of one case.

    Attributes:
        case: Case id.
        cells: Cell ids, equal if two runs are compared.
        outcomes: Outcomes of the jobs.
        difference: How outcome, error or value differ, in a sentence; empty if they agree.
        irs: Comparison of each IR that at least one of the jobs has.
    """

    case: str
    cells: tuple[str, str]
    outcomes: tuple[Outcome, Outcome]
    difference: str = ""
    irs: tuple[IrComparison, ...] = ()

    @property
    def id(self) -> str:
        """Text that identifies the pair."""
        before, after = self.cells
        return f"{self.case} on {before if before == after else f'{before} -> {after}'}"

    def equal(self, level: IrLevel) -> bool:
        """Return whether nothing differs."""
        return not self.difference and all(ir.equal(level) for ir in self.irs)


def compare_jobs(
    a: StoredJob, b: StoredJob, irs: Iterable[str] | None = None, *, quick: bool = False
) -> JobComparison:
    """Compare two jobs of one case.

    Args:
        a: First job.
        b: Second job.
        irs: Artifacts to compare, by default those of `select_informative_irs`.
        quick: Whether IRs with equal fingerprints are not read; their difference has no facts.

    Returns:
        The comparison. An unreadable blob counts as a difference.
    """
    irs = select_informative_irs(a.record, b.record) if irs is None else irs
    try:
        difference = _describe_difference(load_observation(*a), load_observation(*b))
    except CorruptBlobError as error:
        difference = str(error)
    return JobComparison(
        case=a.record.case,
        cells=(a.record.cell, b.record.cell),
        outcomes=(a.record.outcome, b.record.outcome),
        difference=difference,
        irs=tuple(found for ir in irs if (found := _compare_ir(a, b, ir, quick=quick)) is not None),
    )


def compare_irs_of_job(side: StoredJob, first: str, second: str) -> JobComparison | None:
    """Compare two IRs of one job, e.g. its StableHLO with that for another platform.

    Args:
        side: Job with both artifacts.
        first: First artifact.
        second: Second artifact, of the same kind of IR.

    Returns:
        The comparison, None if the job lacks one of them.
    """
    if first not in side.record.artifacts or second not in side.record.artifacts:
        return None
    kind = kind_of_artifact(first)
    a, b = (_select_artifact(side, name, kind) for name in (first, second))
    found = _compare_ir(a, b, kind, quick=True)
    return JobComparison(
        case=side.record.case,
        cells=(side.record.cell, side.record.cell),
        outcomes=(side.record.outcome, side.record.outcome),
        irs=() if found is None else (replace(found, ir=f"{first} -> {second}"),),
    )


def _select_artifact(side: StoredJob, name: str, kind: str) -> StoredJob:
    """Return a job whose only IR, under the name of its kind, is the given artifact."""
    known = side.record.ir.get(name)
    irs = {} if known is None else {kind: known}
    artifacts = {kind: side.record.artifacts[name]}
    return StoredJob(replace(side.record, artifacts=artifacts, ir=irs), side.blobs)


def load_ir_text(side: StoredJob, ir: str) -> IrText | None:
    """Return an IR of a job, None if it has none.

    Raises:
        CorruptBlobError: If its blob is missing or changed.
    """
    name = side.record.artifacts.get(ir)
    if name is None:
        return None
    return IrText(side.blobs.get(name).decode("utf-8", "surrogatepass"), kind_of_artifact(ir))


def _compare_ir(a: StoredJob, b: StoredJob, ir: str, *, quick: bool) -> IrComparison | None:
    known = a.record.ir.get(ir), b.record.ir.get(ir)
    # Equal fingerprints spare reading and parsing both texts.
    if (
        quick
        and known[0] is not None
        and known[1] is not None
        and _is_same_form(known[0], known[1])
    ):
        unknown = Counter(known[0].not_understood) + Counter(known[1].not_understood)
        same = IrDiff(kind=ir, equal=True, neutral_equal=True, not_understood=unknown)
        return IrComparison(ir=ir, diff=same)
    try:
        before, after = load_ir_text(a, ir), load_ir_text(b, ir)
        if before is not None and after is not None:
            diff = diff_texts(before, after)
            case = a.record.case
            # Locations contain the folder of the checkout in which the job ran.
            changes = (
                replace(change, where=relative_to_project(change.where, case))
                for change in diff.changes
            )
            return IrComparison(ir=ir, diff=replace(diff, changes=tuple(changes)))
    except CorruptBlobError as error:
        return IrComparison(ir=ir, problem=str(error))
    except IrSyntaxError as error:
        return IrComparison(ir=ir, problem=f"not understood: {error}")
    if before is None and after is None:
        return None
    which = "first" if after is None else "second"
    return IrComparison(ir=ir, problem=f"only the {which} has one", missing=True)


def _is_same_form(a: IrRecord, b: IrRecord) -> bool:
    # Fingerprints of different versions of a form cannot be compared.
    return bool(a.exact) and (a.exact, a.version) == (b.exact, b.version)


def _describe_difference(a: Observation, b: Observation) -> str:
    """Return how outcome, error or value differ."""
    if Outcome.OK in {a.outcome, b.outcome} and a.outcome is not b.outcome:
        return f"{describe_outcome(a)} -> {describe_outcome(b)}"
    if a.outcome is not Outcome.OK:
        return _describe_failures(a, b)
    if a.value is None or b.value is None:
        if a.value is b.value:
            return ""
        return f"only the {'second' if a.value is None else 'first'} has a value"
    compared = compare_values(b.value, a.value, word="before")
    return "" if compared.agrees else f"value: {compared.messages[0]}"


def _describe_failures(a: Observation, b: Observation) -> str:
    """Return how the errors of two failed jobs differ, empty if they are the same."""
    before, after = make_recorded_error(a), make_recorded_error(b)
    if is_same_error(before, after):
        return ""
    if describe_outcome(a) != describe_outcome(b):
        return f"{describe_outcome(a)} -> {describe_outcome(b)}"
    # The same beginning: the first differing line of a long message is the informative one.
    lines = zip_longest(before.message.splitlines(), after.message.splitlines(), fillvalue="")
    first, second = next((pair for pair in lines if pair[0] != pair[1]), ("", ""))
    return f"{describe_outcome(a)} ... {first.strip()!r} -> {second.strip()!r}"


@dataclass(frozen=True, slots=True)
class ComparisonGroup:
    """Jobs in which one IR differs by the same set of changes.

    Attributes:
        ir: The IR.
        jobs: The pairs of jobs; the first has the fewest changes to look at.
        example: The difference of the first.
    """

    ir: str
    jobs: list[JobComparison]
    example: IrDiff


def group_by_changes(jobs: Sequence[JobComparison], level: IrLevel) -> list[ComparisonGroup]:
    """Group jobs whose IRs differ by the same set of changes of the highest severity.

    Args:
        jobs: Compared jobs.
        level: Form in which IRs are compared; equal IRs are in no group.

    Returns:
        The groups, the gravest first, then those with the most jobs.
    """
    found: dict[tuple[str, frozenset[tuple[str, ...]]], list[tuple[JobComparison, IrDiff]]] = {}
    for job in jobs:
        for compared in job.irs:
            if compared.diff is None or not (changes := level.select_changes(compared.diff)):
                continue
            # Minor changes differ from program to program although the major change is one.
            gravest = [c for c in changes if c.severity == compared.diff.severity]
            same = frozenset((c.severity, c.about, c.title) for c in gravest)
            found.setdefault((compared.ir, same), []).append((job, compared.diff))
    groups = []
    for (ir, _), members in found.items():
        smallest = min(members, key=lambda member: sum(c.count for c in member[1].changes))
        rest = [job for job, _ in members if job is not smallest[0]]
        groups.append(ComparisonGroup(ir, [smallest[0], *rest], smallest[1]))
    order = [*Severity, None]
    return sorted(groups, key=lambda group: (order.index(group.example.severity), -len(group.jobs)))
