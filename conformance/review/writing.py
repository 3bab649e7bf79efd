"""What decisions come to: goldens and case files as they would be; nothing is written here."""

from __future__ import annotations

import io
import tokenize
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

import tomllib

from conformance.corpus.metadata import deviations_of
from conformance.engine.ir_analysis import canonical_text
from conformance.engine.record_judge import Judge, golden_variant, observation_of
from conformance.errors import UsageError
from conformance.files import MALFORMED
from conformance.golden.accept import Candidate, plan_accept
from conformance.golden.store import GoldenStore
from conformance.model.outcome import Verdict
from conformance.review.decisions import Choice
from conformance.review.declaring import declared, ended, metadata_in
from conformance.review.groups import Member
from conformance.review.literals import WIDTH
from conformance.review.proposing import Wish, declarations, ending_of, undeclarable
from conformance.review.refusing import is_undeclared

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.blobs import BlobStore
    from conformance.engine.job import Job
    from conformance.golden.accept import AcceptPlan
    from conformance.model.record import Record
    from conformance.review.decisions import Chosen, Decision
    from conformance.review.proposing import Declaration

_CONFIGURATIONS: Final = (".ruff.toml", "ruff.toml", "pyproject.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A job that a decision is about, and that it cannot be taken for."""

    member: Member
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """What decisions come to.

    Attributes:
        decisions: Those that come to something.
        plans: Goldens to write, one for each folder of families.
        sources: Case files with other deviations, by path, as bytes.
        declarations: The edits in them, by group.
        refused: Jobs that are left out, and why.
    """

    decisions: tuple[Chosen, ...] = ()
    plans: tuple[AcceptPlan, ...] = ()
    sources: Mapping[Path, bytes] = field(default_factory=dict)
    declarations: Mapping[str, tuple[Declaration, ...]] = field(default_factory=dict)
    refused: tuple[Refused, ...] = ()

    @property
    def settled(self) -> tuple[Decision, ...]:
        """The decisions that are taken care of once all is written."""
        return tuple(one.decision for one in self.decisions)


def outcomes(
    chosen: Sequence[Chosen],
    everything: Sequence[Member],
    blobs: BlobStore,
    known: Sequence[str],
) -> Outcomes:
    """Return what decisions come to.

    What becomes a deviation is declared first, and then judged anew: what a release showed is
    recorded with it, so that the next run finds both.

    Args:
        chosen: The decisions, with their jobs.
        everything: All jobs of the run.
        blobs: Artifacts of the run.
        known: Every jax release there is.

    Raises:
        UsageError: If a case file cannot be edited as meant, or a deviation would not be shown.
    """
    edits = {
        one.group.id: edits_of(one, everything, known)
        for one in chosen
        if one.decision.choice is Choice.DEVIATION
    }
    sources = edited(edit for found in edits.values() for edit in found)
    refused: list[Refused] = []
    candidates: list[Member] = []
    for one in chosen:
        if one.decision.choice is Choice.ACCEPT:
            refused += [Refused(member=m, reason=m.refusal) for m in one.members if m.refusal]
            candidates += [member for member in one.members if not member.refusal]
        elif one.decision.choice is Choice.DEVIATION:
            candidates += _after_declaring(one, sources, blobs)
    return Outcomes(
        decisions=tuple(chosen),
        plans=_plans(candidates, blobs, known),
        sources={file: encoded(file, text) for file, text in sources.items()},
        declarations=edits,
        refused=tuple(refused),
    )


def edits_of(
    one: Chosen, everything: Iterable[Member], known: Sequence[str]
) -> tuple[Declaration, ...]:
    """Return the edits that a decision for a deviation comes to.

    Raises:
        UsageError: If there is nothing to declare.
    """
    if why := undeclarable(one.members):
        raise UsageError(f"{one.group.id}: no deviation: {why}")
    told = one.decision
    wish = Wish(
        reason=told.reason,
        issue=told.issue,
        releases=told.releases,
        platform=told.platform,
        match=told.match,
    )
    return declarations(one.members, everything, known, wish)


def edited(edits: Iterable[Declaration]) -> dict[Path, str]:
    """Return the case files of some edits with all of them.

    Raises:
        UsageError: If one cannot be made.
    """
    texts: dict[Path, str] = {}
    for edit in edits:
        text = texts[edit.file] if edit.file in texts else read(edit.file)
        if edit.deviation is not None:
            text = declared(
                text, edit.function, edit.deviation, edit.params, width=line_length(edit.file)
            )
        elif edit.ends is not None:
            text = ended(
                text, edit.function, edit.ends, edit.releases, width=line_length(edit.file)
            )
        texts[edit.file] = text
    return texts


def line_length(file: Path) -> int:
    """Return how many columns the formatter of a file's project admits.

    Args:
        file: The file.
    """
    for folder in file.resolve().parents:
        for name in _CONFIGURATIONS:
            try:
                told = tomllib.loads((folder / name).read_text(encoding="utf-8"))
            except (OSError, *MALFORMED):
                continue
            tools = told.get("tool", {}) if name == "pyproject.toml" else {"ruff": told}
            found = [tools[tool] for tool in ("ruff", "black") if tool in tools]
            if found:
                width = found[0].get("line-length", WIDTH)
                return width if isinstance(width, int) else WIDTH
    return WIDTH


def read(file: Path) -> str:
    """Return a case file's text, its line ends as they are.

    Raises:
        UsageError: If it cannot be decoded.
    """
    data = file.read_bytes()
    try:
        return data.decode(_encoding(data))
    except (SyntaxError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from None


def encoded(file: Path, text: str) -> bytes:
    """Return a case file's text as the bytes it is to hold."""
    return text.encode(_encoding(file.read_bytes()))


def _encoding(data: bytes) -> str:
    return tokenize.detect_encoding(io.BytesIO(data).readline)[0]


def _after_declaring(one: Chosen, sources: Mapping[Path, str], blobs: BlobStore) -> list[Member]:
    """Return the jobs of a deviation that may become golden once it is declared.

    Raises:
        UsageError: If a job would still be unexpected for what it deviates in.
    """
    judge = Judge(blobs)
    told = []
    for member in one.members:
        job = _with_deviations(member.job, sources)
        again = Member(job=job, record=judge.rejudge(job, member.record))
        if _still_unexpected(again):
            raise UsageError(
                f"{one.group.id}: {member.record.case} on {member.record.cell} would still be "
                f"{again.record.verdict}: {_reason(again.record)}; give another range, platform "
                "or pattern"
            )
        if not again.refusal:
            told.append(again)
    return told


def _still_unexpected(member: Member) -> bool:
    """Say whether a job is not what its case declares by now."""
    if member.record.verdict in {Verdict.FIXED, Verdict.STALE}:
        return bool(ending_of(member))
    if member.record.verdict in {Verdict.CRASHED, Verdict.TIMED_OUT}:
        return True
    return is_undeclared(member.record)


def _reason(record: Record) -> str:
    return record.reasons[0] if record.reasons else "no reason given"


def _with_deviations(job: Job, sources: Mapping[Path, str]) -> Job:
    """Return a job whose case declares what its file is to declare."""
    case = job.case
    if case.file not in sources:
        return job
    metadata = metadata_in(sources[case.file], case.name)
    param = case.id.partition("[")[2].removesuffix("]")
    return replace(job, case=replace(case, deviations=deviations_of(metadata, param)))


def _plans(
    members: Iterable[Member], blobs: BlobStore, known: Sequence[str]
) -> tuple[AcceptPlan, ...]:
    return accept_plans([(m.job, m.record) for m in members], blobs, known)


def accept_plans(
    chosen: Iterable[tuple[Job, Record]], blobs: BlobStore, known: Sequence[str]
) -> tuple[AcceptPlan, ...]:
    """Return what accepting some jobs comes to, a plan for each folder of families.

    Args:
        chosen: The jobs with their records.
        blobs: Artifacts of the run.
        known: Every jax release there is.
    """
    by_root: dict[Path, list[Candidate]] = {}
    for job, record in chosen:
        candidate = Candidate(
            case=job.case,
            variant=golden_variant(job),
            release=job.planned.release,
            observation=observation_of(record, blobs),
            text=partial(canonical_text, record, blobs),
        )
        by_root.setdefault(job.case.families, []).append(candidate)
    return tuple(plan_accept(GoldenStore(root), found, known) for root, found in by_root.items())
