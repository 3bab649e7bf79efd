"""The state of a review as JSON, and as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from conformance.model.outcome import ExitCode
from conformance.review.decisions import REVIEW, Choice, Decided
from conformance.review.evidence import described, evidence_of, places, proposals
from conformance.review.exporting import tally
from conformance.review.groups import tally as tally_of_groups
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.review.groups import Group
    from conformance.review.session import Session
    from conformance.review.writing import Outcomes


def exit_code_of(session: Session) -> ExitCode:
    """Return the exit status of a review: unexpected as long as something is undecided."""
    left = session.pending or session.changed
    return ExitCode.UNEXPECTED if left else ExitCode.OK


def review_data(session: Session, done: Outcomes | None, *, written: bool) -> dict[str, Any]:
    """Return what is pending, and what decisions come to, for `--json`.

    Args:
        session: The review.
        done: What decisions come to; None where nothing is decided or exported.
        written: Whether that has been written.
    """
    return {
        "run": session.directory.id,
        "pending": len(session.pending),
        "groups": [_group(session, group) for group in session.groups],
        "changed": [case.id for case in session.changed],
        "outcome": None if done is None else _outcome(done, written=written),
        "exit": int(exit_code_of(session)),
    }


def _group(session: Session, group: Group) -> dict[str, Any]:
    decision = session.decision(group)
    why, proposed = proposals(group, session.files)
    found = session.files.found.get(group.id)
    return {
        "id": group.id,
        "kind": group.kind,
        "verdict": group.verdict,
        "title": group.title,
        "decided": session.decided(group),
        "decision": None if decision is None else msgspec.to_builtins(decision),
        "cases": list(group.cases),
        "cells": list(group.cells),
        "where": places(group.members, session.files.releases),
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
        "not_declared": why,
        "deviations": [described(one) for one in proposed],
        "found_out": None if found is None else msgspec.to_builtins(found),
        "evidence": [text for text, _ in evidence_of(group, session.files)],
    }


def _outcome(done: Outcomes, *, written: bool) -> dict[str, Any]:
    return {
        "written": written,
        "goldens": [entry for plan in done.plans for entry in plan.entries],
        "conflicts": [conflict for plan in done.plans for conflict in plan.conflicts],
        "files": [str(file) for file in outcome_files(done)],
        "deviations": [described(one) for found in done.declarations.values() for one in found],
        "refused": [
            {"case": one.member.record.case, "cell": one.member.record.cell, "reason": one.reason}
            for one in done.refused
        ],
    }


def outcome_files(done: Outcomes) -> list[str]:
    """Return the case files and golden files that would be written."""
    goldens = (file for plan in done.plans for file in (*plan.documents, *plan.contents))
    return sorted({str(file) for file in (*done.sources, *goldens)})


def outcome_lines(done: Outcomes) -> Iterator[str]:
    """Yield what decisions come to, a line each."""
    for found in done.declarations.values():
        for one in found:
            yield f"deviation: {described(one)}  in {one.file}"
    for plan in done.plans:
        yield from plan.conflicts
    for refused in done.refused:
        record = refused.member.record
        yield f"not accepted: {record.case} on {record.cell}: {refused.reason}"
    yield f"goldens: {tally(done)}"


def review_lines(session: Session, done: Outcomes | None, *, written: bool) -> Iterator[str]:
    """Yield what decisions come to, and what is pending, a line each.

    Args:
        session: The review.
        done: What decisions come to; None where nothing is decided or exported.
        written: Whether that has been written.
    """
    if done is not None:
        yield from outcome_lines(done)
        if not written:
            yield "no golden and no case file is written"
    for group in session.groups:
        yield f"{group.id}  {_state(session, group):12}  {group.size}: {group.title}"
    if not session.groups:
        yield f"nothing is pending in {session.directory.path}"
    else:
        number = len(session.pending)
        groups = plural(len(session.groups), "group")
        yield f"{number} of {groups} pending: {tally_of_groups(session.groups)}"


def pending_lines(session: Session) -> Iterator[str]:
    """Yield what is pending when a terminal review ends, and where its decisions are kept.

    Args:
        session: The review.
    """
    if not session.groups:
        yield f"nothing is pending in {session.directory.path}"
        return
    taken = len(session.taken)
    yield f"{len(session.pending)} of {plural(len(session.groups), 'group')} pending"
    if taken:
        word = "decision is" if taken == 1 else "decisions are"
        yield f"{taken} {word} kept in {session.directory.path / REVIEW}"


def _state(session: Session, group: Group) -> str:
    decision = session.decision(group)
    if decision is None:
        return str(group.verdict)
    partly = session.decided(group) is Decided.PARTLY
    word = {Choice.ACCEPT: "accepted", Choice.REJECT: "rejected", Choice.DEVIATION: "deviation"}
    return f"{word[decision.choice]}{' (partly)' if partly else ''}"
