"""Groups of the pending jobs of a run, a group for each change. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from conformance.engine.runs.root_causes import find_root_causes
from conformance.ir.graph import kind_of_artifact
from conformance.judge.verdict import IF_INTENDED, TAINTED
from conformance.model.case import Policy
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.record import IrStatus
from conformance.report.text import flatten
from conformance.review.judged_jobs import hash_texts
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from conformance.model.record import Record
    from conformance.model.run_files import Evidence
    from conformance.review.judged_jobs import JudgedJob

_TITLE: Final = 400
_STAGES: Final = ("jaxpr", "stablehlo", "hlo")
"""IRs in the order of compilation: a change of an early IR explains those of later IRs."""


class GroupKind(StrEnum):
    """The reason why the jobs of a group are pending."""

    UNEXPECTED = "unexpected"
    """Value, error or facts differ from the golden, or from the declared deviation."""
    NEW = "new"
    """The job succeeded and has no golden yet."""
    IR = "ir"
    """Only an IR whose policy is to warn differs from the golden."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReviewGroup:
    """Jobs that are pending for the same reason.

    Attributes:
        id: Stable from run to run, as long as the common feature of the jobs is the same.
        kind: Why they are pending.
        title: Common feature of the jobs, in one line.
        members: The jobs.
    """

    id: str
    kind: GroupKind
    title: str
    members: tuple[JudgedJob, ...]

    @property
    def verdict(self) -> Verdict:
        """Verdict of the jobs."""
        return self.members[0].record.verdict

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of the cases, in order."""
        return tuple(dict.fromkeys(member.record.case for member in self.members))

    @property
    def cells(self) -> tuple[str, ...]:
        """Ids of the cells, in order."""
        return tuple(dict.fromkeys(member.record.cell for member in self.members))

    @property
    def size(self) -> str:
        """Number of cells and cases, in words."""
        return f"{plural(len(self.cells), 'cell')} / {plural(len(self.cases), 'case')}"


def group_changes(
    jobs: Iterable[JudgedJob], evidence: Mapping[str, Evidence] | None = None
) -> tuple[ReviewGroup, ...]:
    """Return pending jobs in groups: unexpected jobs, then jobs with a changed IR, then new jobs.

    Each job is in one group at most. An unexpected result outranks changes of its IRs, and the
    first IR that changed outranks the IRs that are compiled from it.

    Args:
        jobs: All jobs of a run, judged by the current goldens.
        evidence: Results of triage, by cause id: effects of one culprit are one group.
    """
    # By case and cell: root causes hold records, not jobs.
    remaining = {_get_place(judged.record): judged for judged in jobs}
    unexpected_ones = [
        judged.record
        for judged in remaining.values()
        if _is_unexpected(judged.record) and not _is_new(judged)
    ]
    found = [
        ReviewGroup(
            id=cause.id,
            kind=GroupKind.UNEXPECTED,
            title=_make_title(cause.reason),
            members=tuple(remaining.pop(_get_place(record)) for record in cause.records),
        )
        for cause in find_root_causes(unexpected_ones, evidence)
    ]
    rest = [judged for judged in remaining.values() if _is_pending(judged)]
    new = filter(_is_new, rest)
    return (
        *found,
        *_group_by_ir(judged for judged in rest if not _is_new(judged)),
        *_group_by_topic(new),
    )


def _get_place(record: Record) -> tuple[str, str]:
    return record.case, record.cell


def _is_unexpected(record: Record) -> bool:
    return record.unexpected or record.golden_at_fault


def _is_pending(judged: JudgedJob) -> bool:
    """Say whether a job needs a decision: unexpected, or a candidate for a golden."""
    return _is_unexpected(judged.record) or not judged.refusal


def _is_new(judged: JudgedJob) -> bool:
    """Say whether a job succeeded and has no golden; a failure without a golden is unexpected."""
    return judged.record.verdict is Verdict.NEW and judged.record.outcome is Outcome.OK


def _group_by_ir(jobs: Iterable[JudgedJob]) -> Iterable[ReviewGroup]:
    """Yield groups of jobs with a changed IR, by the first changed IR and its changes."""
    by_change: dict[tuple[str, tuple[str, ...]], list[JudgedJob]] = {}
    for judged in jobs:
        changed = [
            ir
            for ir, kept in judged.record.ir.items()
            if kept.status is IrStatus.CHANGED
            and judged.job.case.policy_of(ir) is not Policy.INFORM
        ]
        if changed:
            first = min(changed, key=lambda ir: (_STAGES.index(kind_of_artifact(ir)), ir))
            by_change.setdefault((first, judged.record.ir[first].changes), []).append(judged)
    # The most frequent change first: deciding on it settles most jobs.
    for (ir, changes), found in sorted(by_change.items(), key=lambda item: -len(item[1])):
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        title = f"{ir}: {changes[0] if changes else 'differs'}{more}"
        # An id of the change alone, so that a later run recognises a rejected change.
        identity = hash_texts(GroupKind.IR, ir, *changes)
        yield ReviewGroup(
            id=identity, kind=GroupKind.IR, title=_make_title(title), members=tuple(found)
        )


def _group_by_topic(jobs: Iterable[JudgedJob]) -> Iterable[ReviewGroup]:
    by_topic: dict[tuple[str, str, str], list[JudgedJob]] = {}
    for judged in jobs:
        case, record = judged.job.case, judged.record
        # Conforming results can be accepted at once; others need a reviewer who knows the right
        # value.
        conforms = record.conformance is Conformance.CONFORMS
        tainted = any(reason.startswith(TAINTED) for reason in record.reasons)
        what = TAINTED if tainted else "no golden yet"
        how = "conforms to its references" if conforms else "no reference vouches for it"
        by_topic.setdefault((what, f"{case.family}/{case.topic}", how), []).append(judged)
    for (what, topic, how), found in by_topic.items():
        identity = hash_texts(GroupKind.NEW, what, topic, how)
        title = _make_title(f"{what}: {topic}, {how}")
        yield ReviewGroup(id=identity, kind=GroupKind.NEW, title=title, members=tuple(found))


def _make_title(text: str) -> str:
    return flatten(text.partition(IF_INTENDED)[0], _TITLE) or "without a reason"


def count_verdicts(found: Iterable[ReviewGroup]) -> str:
    """Return the number of groups of each verdict, in words."""
    counts = Counter(str(g.verdict) if g.kind is not GroupKind.IR else "IR changed" for g in found)
    return ", ".join(f"{number} {word}" for word, number in counts.items())
