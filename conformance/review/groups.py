"""Pending changes of a run, grouped by what is the same about them: one change, one group. Pure."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from conformance.engine.root_causes import root_causes
from conformance.ir.graph import kind_of_artifact
from conformance.judge.verdict import IF_INTENDED, TAINTED
from conformance.model.case import Policy
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.run import RunCase
from conformance.model.traceback import FRAMES
from conformance.report.summary import ir_groups
from conformance.report.text import one_line
from conformance.review.refusing import refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.engine.job import Job
    from conformance.model.evidence import Evidence
    from conformance.model.record import Record

_ID: Final = 12
"""Digits of an id."""
_TITLE: Final = 400
_HOW: Final = frozenset({"stderr", "traceback", FRAMES})
"""Artifacts that hold paths and line numbers: an edit elsewhere changes them, and no decision."""
_STAGES: Final = ("jaxpr", "stablehlo", "hlo")
"""IRs in the order in which one is made of the other: an early change explains later ones."""


class Kind(StrEnum):
    """Why something is pending."""

    UNEXPECTED = "unexpected"
    """Value, error or facts are not as recorded, or no longer as declared."""
    NEW = "new"
    """It ended well, and nothing is recorded of it yet."""
    IR = "ir"
    """All is as recorded but an IR of which a change warns."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Member:
    """One job of a group, with what came of it."""

    job: Job
    record: Record

    @property
    def seen(self) -> str:
        """What was observed, as a hash: a decision is about this and nothing else."""
        record = self.record
        error = record.error.signature if record.error is not None else ""
        told = sorted(pair for pair in record.artifacts.items() if pair[0] not in _HOW)
        return _hash(str(record.outcome), error, *(part for pair in told for part in pair))

    @property
    def release(self) -> str:
        """Version of jax in its cell."""
        return self.job.planned.release

    @property
    def refusal(self) -> str:
        """Why it may not become golden, empty when it may."""
        return refusal(self.record, self.job.planned.versions)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """Jobs that are pending for the same reason.

    Attributes:
        id: Stays the same from run to run, as long as what the jobs have in common does.
        kind: Why they are pending.
        title: What they have in common, in one line.
        members: The jobs.
    """

    id: str
    kind: Kind
    title: str
    members: tuple[Member, ...]

    @property
    def verdict(self) -> Verdict:
        """Verdict of its jobs."""
        return self.members[0].record.verdict

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of its cases, in order."""
        return tuple(dict.fromkeys(member.record.case for member in self.members))

    @property
    def cells(self) -> tuple[str, ...]:
        """Ids of its cells, in order."""
        return tuple(dict.fromkeys(member.record.cell for member in self.members))

    @property
    def size(self) -> str:
        """How much it is about, in words."""
        cells, cases = len(self.cells), len(self.cases)
        return f"{cells} cell{'s' * (cells != 1)} / {cases} case{'s' * (cases != 1)}"


def groups(
    members: Iterable[Member], evidence: Mapping[str, Evidence] | None = None
) -> tuple[Group, ...]:
    """Return what is pending: what is unexpected first, then what an IR warns of, then the new.

    Each job is in one group at most: what is unexpected about it comes before its IRs, and the
    first IR that changed before those that are made of it.

    Args:
        members: All jobs of a run, judged by the goldens as they are now.
        evidence: Results of triage, by cause id: effects of one culprit are one group.
    """
    everything = {(m.record.case, m.record.cell): m for m in members}
    found = list(_unexpected(everything, evidence))
    taken = {key for group in found for key in map(_key, group.members)}
    rest = [m for key, m in everything.items() if key not in taken and _is_pending(m)]
    new = [member for member in rest if _is_new(member.record)]
    others = [member for member in rest if not _is_new(member.record)]
    return (*found, *_by_ir(others), *_new(new))


def _key(member: Member) -> tuple[str, str]:
    return member.record.case, member.record.cell


def _unexpected(
    everything: dict[tuple[str, str], Member], evidence: Mapping[str, Evidence] | None
) -> Iterable[Group]:
    records = (member.record for member in everything.values())
    pending = [one for one in records if _is_unexpected(one) and not _is_new(one)]
    for cause in root_causes(pending, evidence):
        yield Group(
            id=cause.id,
            kind=Kind.UNEXPECTED,
            title=_line(cause.reason),
            members=tuple(everything[record.case, record.cell] for record in cause.records),
        )


def _is_unexpected(record: Record) -> bool:
    return record.unexpected or record.golden_at_fault


def _is_pending(member: Member) -> bool:
    """Say whether something can be decided on a job: what is never golden is so if unexpected."""
    return _is_unexpected(member.record) or not member.refusal


def _is_new(record: Record) -> bool:
    """Say whether a job ended well, and nothing is recorded of it; a failure is a cause."""
    return record.verdict is Verdict.NEW and record.outcome is Outcome.OK


def _by_ir(members: Sequence[Member]) -> Iterable[Group]:
    """Yield the jobs whose IR changed, by the first IR that did and by how."""
    policies = {m.record.case: RunCase(policy=dict(m.job.case.policy)) for m in members}
    first: dict[tuple[str, str], tuple[str, tuple[str, ...]]] = {}
    for group in ir_groups(policies, [m.record for m in members]):
        if group.policy is Policy.INFORM:
            continue
        for record in group.records:
            key, change = (record.case, record.cell), (group.ir, group.changes)
            if key not in first or _stage(change[0]) < _stage(first[key][0]):
                first[key] = change
    by_change: dict[tuple[str, tuple[str, ...]], list[Member]] = {}
    for member in members:
        if _key(member) in first:
            by_change.setdefault(first[_key(member)], []).append(member)
    for (ir, changes), found in sorted(by_change.items(), key=lambda item: -len(item[1])):
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        title = f"{ir}: {changes[0] if changes else 'differs'}{more}"
        identity = _hash(Kind.IR, ir, *changes)
        yield Group(id=identity, kind=Kind.IR, title=_line(title), members=tuple(found))


def _stage(ir: str) -> tuple[int, str]:
    return _STAGES.index(kind_of_artifact(ir)), ir


def _new(members: Iterable[Member]) -> Iterable[Group]:
    by_topic: dict[tuple[str, ...], list[Member]] = {}
    for member in members:
        case = member.job.case
        vouched = member.record.conformance is Conformance.CONFORMS
        tainted = any(reason.startswith(TAINTED) for reason in member.record.reasons)
        what = TAINTED if tainted else "no golden yet"
        how = "conforms to its references" if vouched else "no reference vouches for it"
        key = (what, f"{case.family}/{case.topic}", how)
        by_topic.setdefault(key, []).append(member)
    for (what, topic, how), found in by_topic.items():
        identity = _hash(Kind.NEW, what, topic, how)
        title = _line(f"{what}: {topic}, {how}")
        yield Group(id=identity, kind=Kind.NEW, title=title, members=tuple(found))


def _line(text: str) -> str:
    return one_line(text.partition(IF_INTENDED)[0], _TITLE) or "without a reason"


def _hash(*parts: str) -> str:
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:_ID]


def tally(found: Iterable[Group]) -> str:
    """Return how many groups there are of each verdict, in words."""
    counts = Counter(str(g.verdict) if g.kind is not Kind.IR else "IR changed" for g in found)
    return ", ".join(f"{number} {word}" for word, number in counts.items())
