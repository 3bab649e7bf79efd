"""Outcomes of decisions: the goldens and case files to write. Nothing is written here."""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import tomllib

from conformance.corpus.discovery import parse_cases
from conformance.engine.ir_analysis import render_canonical
from conformance.engine.record_judge import load_observation, name_golden_variant
from conformance.errors import UsageError
from conformance.files import MALFORMED
from conformance.golden.accept import plan_accept
from conformance.golden.accept_plan import AcceptEffect, Candidate
from conformance.golden.store import GoldenStore
from conformance.model.outcome import Verdict
from conformance.review.decisions import Choice
from conformance.review.judged_jobs import JudgedJob, is_undeclared
from conformance.review.proposals import find_ended, propose

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.cache.blobs import BlobStore
    from conformance.golden.accept_plan import AcceptPlan
    from conformance.review.decisions import OpenDecision
    from conformance.review.proposals import DeviationEdit
    from conformance.review.run_data import RunData

DECLARING: Final = "conformance.review.case_edits"
"""Imported only where a case file is rewritten: its parser takes a third of a second to import."""
WIDTH: Final = 88
"""Default line length of Ruff and Black."""
_CONFIGURATIONS: Final = (".ruff.toml", "ruff.toml", "pyproject.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """The effect of decisions.

    Attributes:
        decisions: Decisions with an effect: all except rejections.
        plans: Goldens to write, one for each folder of families.
        sources: Bytes of the edited case files, by path.
        declarations: Edits of the deviations in case files, by group.
        refused: Jobs that are left out because of their `refusal`.
    """

    decisions: tuple[OpenDecision, ...] = ()
    plans: tuple[AcceptPlan, ...] = ()
    sources: Mapping[Path, bytes] = field(default_factory=dict)
    declarations: Mapping[str, tuple[DeviationEdit, ...]] = field(default_factory=dict)
    refused: tuple[JudgedJob, ...] = ()

    @property
    def tally(self) -> str:
        """Number of spans that are added, changed, extended and unchanged, in words."""
        found = Counter(entry.change for plan in self.plans for entry in plan.entries)
        return ", ".join(f"{found[change]} {change}" for change in AcceptEffect)


def plan_outcomes(decisions: Iterable[OpenDecision], data: RunData) -> Outcomes:
    """Return the effect of decisions.

    Deviations are declared first, and their jobs judged again: the behaviour of a release is
    recorded with its deviation, so that the next run finds both.

    Args:
        decisions: The decisions, with their jobs; rejections have no effect.
        data: Data of the run.

    Raises:
        UsageError: If a case file cannot be edited, or a result does not match its deviation.
    """
    effective = tuple(
        open_decision
        for open_decision in decisions
        if open_decision.decision.choice is not Choice.REJECT
    )
    declarations = {
        open_decision.group.id: _propose_declarations(open_decision, data)
        for open_decision in effective
        if open_decision.decision.choice is Choice.DEVIATION
    }
    sources = _rewrite(edit for found in declarations.values() for edit in found)
    refused: list[JudgedJob] = []
    candidates: list[JudgedJob] = []
    for open_decision in effective:
        if open_decision.decision.choice is Choice.ACCEPT:
            refused += [job for job in open_decision.members if job.refusal]
            candidates += [job for job in open_decision.members if not job.refusal]
        else:
            candidates += _judge_declared_jobs(open_decision, sources, data)
    return Outcomes(
        decisions=effective,
        plans=plan_acceptance(candidates, data.blobs, data.known),
        sources=sources,
        declarations=declarations,
        refused=tuple(refused),
    )


def _propose_declarations(open_decision: OpenDecision, data: RunData) -> tuple[DeviationEdit, ...]:
    proposal = propose(open_decision.members, data.jobs, data.known, open_decision.decision)
    if proposal.refusal:
        raise UsageError(f"{open_decision.group.id}: no deviation: {proposal.refusal}")
    return proposal.declarations


def _rewrite(edits: Iterable[DeviationEdit]) -> dict[Path, bytes]:
    """Return the case files of some edits with all of them.

    Raises:
        UsageError: If an edit cannot be made.
    """
    sources: dict[Path, bytes] = {}
    for edit in edits:
        declaring: Any = importlib.import_module(DECLARING)
        # Edits of one file build on each other.
        data = sources.get(edit.file) or edit.file.read_bytes()
        sources[edit.file] = declaring.rewrite_case(data, edit, read_line_length(edit.file))
    return sources


def read_line_length(file: Path) -> int:
    """Return the line length of the formatter in a file's project.

    Args:
        file: A case file.
    """
    # The nearest configuration applies, as for Ruff and Black.
    for folder in file.resolve().parents:
        for name in _CONFIGURATIONS:
            try:
                settings = tomllib.loads((folder / name).read_text(encoding="utf-8"))
            except (OSError, *MALFORMED):
                continue
            tools = settings.get("tool", {}) if name == "pyproject.toml" else {"ruff": settings}
            found = [tools[tool] for tool in ("ruff", "black") if tool in tools]
            if found:
                width = found[0].get("line-length", WIDTH)
                return width if isinstance(width, int) else WIDTH
    return WIDTH


def _judge_declared_jobs(
    open_decision: OpenDecision, sources: Mapping[Path, bytes], data: RunData
) -> Iterable[JudgedJob]:
    """Yield the jobs of a deviation that may become golden once it is declared.

    Raises:
        UsageError: If a job would still be unexpected in spite of the deviation.
    """
    # Members of one group may be in several case files.
    files = {member.job.case.file for member in open_decision.members} & sources.keys()
    cases = {case.id: case for file in files for case in parse_cases(file, sources[file])}
    judge = data.new_judge()
    for member in open_decision.members:
        case = member.job.case
        declared = cases[case.id].deviations if case.id in cases else case.deviations
        job = replace(member.job, case=replace(case, deviations=declared))
        again = JudgedJob(job=job, record=judge.rejudge(job, member.record))
        if _is_still_unexpected(again):
            record = again.record
            raise UsageError(
                f"{open_decision.group.id}: {record.case} on {record.cell} would still be "
                f"{record.verdict}: {next(iter(record.reasons), 'no reason given')}; "
                "give another range, platform or pattern"
            )
        if not again.refusal:
            yield again


def _is_still_unexpected(judged: JudgedJob) -> bool:
    """Say whether a job would still be unexpected with the declarations of its case."""
    verdict = judged.record.verdict
    # A job can also be fixed compared with a recorded failure, without a leftover deviation.
    if verdict in {Verdict.FIXED, Verdict.STALE}:
        return bool(find_ended(judged))
    return verdict in {Verdict.CRASHED, Verdict.TIMED_OUT} or is_undeclared(judged.record)


def plan_acceptance(
    jobs: Iterable[JudgedJob], blobs: BlobStore, known: Sequence[str]
) -> tuple[AcceptPlan, ...]:
    """Return the effect of accepting some jobs, a plan for each folder of families.

    Args:
        jobs: The jobs.
        blobs: Artifacts of the run.
        known: Every known jax release.
    """
    by_root: dict[Path, list[Candidate]] = {}
    for judged in jobs:
        job, record = judged.job, judged.record
        candidate = Candidate(
            case=job.case,
            variant=name_golden_variant(job),
            release=job.planned.release,
            observation=load_observation(record, blobs),
            text=partial(render_canonical, record, blobs),
        )
        # Cases of suites and scripts have goldens in other folders than the project's cases.
        by_root.setdefault(job.case.families, []).append(candidate)
    return tuple(plan_accept(GoldenStore(root), found, known) for root, found in by_root.items())
