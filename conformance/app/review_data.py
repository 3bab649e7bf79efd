"""The state of a review as JSON, and as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from conformance.model.outcome import ExitCode
from conformance.review.decisions import REVIEW, Choice, Progress
from conformance.review.evidence import collect_evidence, format_places
from conformance.review.groups import count_verdicts
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.review.groups import ReviewGroup
    from conformance.review.outcomes import Outcomes
    from conformance.review.review import Review

_DECIDED = {
    Choice.ACCEPT: "accepted",
    Choice.REJECT: "rejected",
    Choice.DEVIATION: "deviation",
}


def exit_code_of(review: Review) -> ExitCode:
    """Return the exit status of a review: unexpected as long as something is undecided."""
    return ExitCode.UNEXPECTED if review.pending or review.changed else ExitCode.OK


def review_data(review: Review, outcomes: Outcomes | None, *, written: bool) -> dict[str, Any]:
    """Return the groups of a review, and the outcomes of decisions, for `--json`.

    Args:
        review: The review.
        outcomes: Outcomes of decisions; None where nothing is decided or exported.
        written: Whether they have been written.
    """
    return {
        "run": review.directory.id,
        "pending": len(review.pending),
        "groups": [_group(review, group) for group in review.groups],
        "changed": [case.id for case in review.changed],
        "outcome": None if outcomes is None else _outcomes(outcomes, written=written),
        "exit": int(exit_code_of(review)),
    }


def _group(review: Review, group: ReviewGroup) -> dict[str, Any]:
    data = review.data
    proposal = data.proposal(group)
    return {
        "id": group.id,
        "kind": group.kind,
        "verdict": group.verdict,
        "title": group.title,
        "decided": review.log.progress(group),
        "decision": msgspec.to_builtins(review.decision(group)),
        "cases": list(group.cases),
        "cells": list(group.cells),
        "where": format_places(group.members, data.releases),
        "jobs": [
            {
                "case": member.record.case,
                "cell": member.record.cell,
                "verdict": member.record.verdict,
                "reasons": member.record.reasons,
                "not_accepted": member.refusal,
            }
            for member in group.members
        ],
        "not_declared": proposal.refusal,
        "deviations": list(map(str, proposal.declarations)),
        "found_out": msgspec.to_builtins(data.triage.get(group.id)),
        "evidence": [line.plain for line in collect_evidence(group, data)],
    }


def _outcomes(outcomes: Outcomes, *, written: bool) -> dict[str, Any]:
    plans = outcomes.plans
    goldens = (file for plan in plans for file in (*plan.documents, *plan.contents))
    return {
        "written": written,
        "goldens": [entry for plan in plans for entry in plan.entries],
        "conflicts": [conflict for plan in plans for conflict in plan.conflicts],
        "files": sorted({str(file) for file in (*outcomes.sources, *goldens)}),
        "deviations": [str(one) for found in outcomes.declarations.values() for one in found],
        "refused": [
            {"case": one.record.case, "cell": one.record.cell, "reason": one.refusal}
            for one in outcomes.refused
        ],
    }


def outcome_lines(outcomes: Outcomes) -> Iterator[str]:
    """Yield the outcomes of decisions, a line each; the last one counts the goldens."""
    for found in outcomes.declarations.values():
        for one in found:
            yield f"deviation: {one}  in {one.file}"
    for plan in outcomes.plans:
        yield from plan.conflicts
    for refused in outcomes.refused:
        record = refused.record
        yield f"not accepted: {record.case} on {record.cell}: {refused.refusal}"
    yield f"goldens: {outcomes.tally}"


def review_lines(review: Review, outcomes: Outcomes | None, *, written: bool) -> Iterator[str]:
    """Yield the outcomes of decisions, and the groups, a line each.

    Args:
        review: The review.
        outcomes: Outcomes of decisions; None where nothing is decided or exported.
        written: Whether they have been written.
    """
    if outcomes is not None:
        yield from outcome_lines(outcomes)
        if not written:
            yield "no golden and no case file is written"
    for group in review.groups:
        yield f"{group.id}  {_state(review, group):12}  {group.size}: {group.title}"
    pending = _pending(review)
    yield f"{pending}: {count_verdicts(review.groups)}" if review.groups else pending


def pending_lines(review: Review) -> Iterator[str]:
    """Yield the number of pending groups when a terminal review ends, and where decisions are.

    Args:
        review: The review.
    """
    yield _pending(review)
    if number := len(review.decisions):
        word = "decision is" if number == 1 else "decisions are"
        yield f"{number} {word} kept in {review.directory.path / REVIEW}"


def _pending(review: Review) -> str:
    if not review.groups:
        return f"nothing is pending in {review.directory.path}"
    return f"{len(review.pending)} of {plural(len(review.groups), 'group')} pending"


def _state(review: Review, group: ReviewGroup) -> str:
    decision = review.decision(group)
    if decision is None:
        return str(group.verdict)
    partly = review.log.progress(group) is Progress.PARTLY
    return f"{_DECIDED[decision.choice]}{' (partly)' if partly else ''}"
