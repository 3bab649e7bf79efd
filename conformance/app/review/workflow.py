"""A review of a run: opened, decided on by flags, written or exported, and shown."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from conformance.app.acceptance import check_goldens_writable
from conformance.app.case_choice import list_cases
from conformance.app.output_files import print_note, write_file
from conformance.app.run_request import load_request
from conformance.app.session import Session
from conformance.corpus.case_selection import matches_name
from conformance.corpus.metadata import normalize_specifier
from conformance.errors import NothingSelectedError, UsageError
from conformance.golden.writing import refuse_in_ci
from conformance.model.outcome import ExitCode
from conformance.review.decisions import REVIEW, Choice, Progress
from conformance.review.evidence import collect_evidence, format_places
from conformance.review.export import find_author, find_repository, render_markdown, render_patches
from conformance.review.groups import count_verdicts
from conformance.review.review import Review
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from conformance.app.context import ProjectContext
    from conformance.review.decisions import Decision, Terms
    from conformance.review.groups import ReviewGroup
    from conformance.review.judged_jobs import JudgedJob
    from conformance.review.outcomes import Outcomes


_DECIDED = {
    Choice.ACCEPT: "accepted",
    Choice.REJECT: "rejected",
    Choice.DEVIATION: "deviation",
}


def find_exit_code(review: Review) -> ExitCode:
    """Return the exit status of a review: unexpected as long as something is undecided."""
    # A case that changed since the run is not judged, so its review is not complete.
    return ExitCode.UNEXPECTED if review.pending or review.changed else ExitCode.OK


def make_review_json(review: Review, outcomes: Outcomes | None, *, written: bool) -> dict[str, Any]:
    """Return the groups of a review, and the outcomes of decisions, for `--json`.

    Args:
        review: The review.
        outcomes: Outcomes of decisions; None where nothing is decided or exported.
        written: Whether they have been written.
    """
    return {
        "run": review.directory.id,
        "pending": len(review.pending),
        "groups": [_make_group_json(review, group) for group in review.groups],
        "changed": [case.id for case in review.changed],
        "outcome": None if outcomes is None else _make_outcomes_json(outcomes, written=written),
        "exit": int(find_exit_code(review)),
    }


def _make_group_json(review: Review, group: ReviewGroup) -> dict[str, Any]:
    data = review.data
    proposal = data.make_proposal(group)
    return {
        "id": group.id,
        "kind": group.kind,
        "verdict": group.verdict,
        "title": group.title,
        "decided": review.log.progress(group),
        "decision": msgspec.to_builtins(review.find_decision(group)),
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
        # The keys of this JSON are older than the names in the code, and scripts read them.
        "found_out": msgspec.to_builtins(data.triage.get(group.id)),
        "evidence": [line.plain for line in collect_evidence(group, data)],
    }


def _make_outcomes_json(outcomes: Outcomes, *, written: bool) -> dict[str, Any]:
    plans = outcomes.plans
    # Documents and the contents that they name: both belong into a commit.
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


def render_outcomes(outcomes: Outcomes) -> Iterator[str]:
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


def render_review(review: Review, outcomes: Outcomes | None, *, written: bool) -> Iterator[str]:
    """Yield the outcomes of decisions, and the groups, a line each.

    Args:
        review: The review.
        outcomes: Outcomes of decisions; None where nothing is decided or exported.
        written: Whether they have been written.
    """
    if outcomes is not None:
        yield from render_outcomes(outcomes)
        if not written:
            yield "no golden and no case file is written"
    for group in review.groups:
        yield f"{group.id}  {_describe_state(review, group):12}  {group.size}: {group.title}"
    pending = _count_pending(review)
    yield f"{pending}: {count_verdicts(review.groups)}" if review.groups else pending


def render_pending(review: Review) -> Iterator[str]:
    """Yield the number of pending groups when a terminal review ends, and where decisions are.

    Args:
        review: The review.
    """
    yield _count_pending(review)
    if number := len(review.decisions):
        word = "decision is" if number == 1 else "decisions are"
        yield f"{number} {word} kept in {review.directory.path / REVIEW}"


def _count_pending(review: Review) -> str:
    if not review.groups:
        return f"nothing is pending in {review.directory.path}"
    return f"{len(review.pending)} of {plural(len(review.groups), 'group')} pending"


def _describe_state(review: Review, group: ReviewGroup) -> str:
    decision = review.find_decision(group)
    if decision is None:
        return str(group.verdict)
    partly = review.log.progress(group) is Progress.PARTLY
    return f"{_DECIDED[decision.choice]}{' (partly)' if partly else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewOptions:
    """The options of `conformance review`.

    Attributes:
        select: Families, case ids or globs to review; empty is every case of the run.
        run: Directory or id of the run, None for the newest.
        cell: Ids of cells to review; empty is every cell of the run.
        accept: Groups to make golden.
        reject: Groups to reject.
        deviation: Groups to declare as deviations.
        everything: Whether to accept every group that can be accepted.
        terms: Reason of `reject` and `deviation`, and the declaration of a deviation.
        by: Name of the reviewer, None for the author that git is configured with.
        dry_run: Whether to write no file and save no decision.
        patch: File for the decisions as patches, None for none.
        markdown: File for the review as Markdown, None for none.
    """

    select: tuple[str, ...]
    run: str | None
    cell: tuple[str, ...]
    accept: tuple[str, ...]
    reject: tuple[str, ...]
    deviation: tuple[str, ...]
    everything: bool
    terms: Terms
    by: str | None
    dry_run: bool
    patch: Path | None
    markdown: Path | None

    @property
    def has_decisions(self) -> bool:
        """Whether flags decide on any group."""
        return bool(self.accept or self.reject or self.deviation or self.everything)

    @property
    def is_scripted(self) -> bool:
        """Whether flags replace the dialog in a terminal."""
        exports = self.patch is not None or self.markdown is not None
        return self.has_decisions or self.dry_run or exports


def parse_range(text: str | None) -> str | None:
    """Return a range of releases as a PEP 440 specifier, without the name `jax`.

    Args:
        text: The range, None for none.

    Raises:
        UsageError: If the text is no specifier.
    """
    if text is None:
        return None
    try:
        return str(SpecifierSet(normalize_specifier(text)))
    except InvalidSpecifier:
        raise UsageError(
            f"--range {text}: expected a specifier of jax releases, e.g. '>=0.5.1,<0.6'"
        ) from None


def open_review(context: ProjectContext, options: ReviewOptions) -> Review:
    """Return the review of a run, or of some of its cases and cells.

    Args:
        context: The project.
        options: The run, the cases and cells, and the reviewer.

    Raises:
        NothingSelectedError: If the run has no record of these cases and cells.
        CorruptRunError: If the run cannot be read.
    """
    select, cells = options.select, options.cell
    directory = context.runs.open(options.run)
    request = load_request(directory)

    def is_selected(member: JudgedJob) -> bool:
        named = not select or any(matches_name(member.job.case, text) for text in select)
        return named and (not cells or member.record.cell in cells)

    review = Review(
        directory,
        # A function: cases are read again after writing, which edits their files.
        lambda: list_cases(context, request),
        context.releases,
        # Likewise, so that a reload judges by the goldens that were just written.
        partial(Session(context=context).make_judge, directory.blobs),
        wanted=is_selected,
        by=options.by or find_author(context.project.root),
        inform=print_note,
    )
    # Nothing pending is a result; a selection without records is a mistake.
    if (select or cells) and not any(map(is_selected, review.data.jobs)):
        raise NothingSelectedError(
            f"{directory.path} holds no record of {', '.join((*select, *cells))}, expected one"
        )
    return review


def apply_decisions(
    context: ProjectContext, review: Review, options: ReviewOptions
) -> tuple[Outcomes | None, bool]:
    """Take the decisions of flags, and write or export their outcomes.

    Args:
        context: The project.
        review: The review.
        options: The decisions, and where they are exported to.

    Returns:
        The outcomes, None if flags neither decide nor export; and whether they were written.

    Raises:
        UsageError: If a decision cannot be taken, or an outcome may not be written.
        InfrastructureError: If the disk refuses.
    """
    # All decisions are made before the first is taken: an invalid one must not leave others behind.
    for decision in _make_decisions(review, options):
        review.take(decision)
    outcomes = review.plan()
    _export(review, outcomes, options)
    exports = options.patch is not None
    # An export leaves the tree unchanged, because its patches are applied to a clean one.
    written = options.has_decisions and not exports and not options.dry_run
    if written:
        outcomes = review.write(partial(check_outcomes, context))
    elif options.has_decisions and not options.dry_run:
        # Exported decisions are kept, so that the run does not show their groups as pending.
        review.save()
    return (outcomes if options.has_decisions or exports else None), written


def check_outcomes(context: ProjectContext, outcomes: Outcomes) -> None:
    """Check that the files of outcomes may be written.

    Args:
        context: The project.
        outcomes: The outcomes.

    Raises:
        UsageError: If the variable CI is set, or they are files of an installed package.
    """
    refuse_in_ci()
    folders = [folder for plan in outcomes.plans for folder in plan.documents]
    check_goldens_writable(context, [*outcomes.sources, *folders])


def _make_decisions(review: Review, options: ReviewOptions) -> list[Decision]:
    """Return the decisions of all flags.

    Raises:
        UsageError: If a decision is not possible, or a group is named twice.
    """
    named = {
        Choice.ACCEPT: [review.find_group(text) for text in options.accept],
        Choice.REJECT: [review.find_group(text) for text in options.reject],
        Choice.DEVIATION: [review.find_group(text) for text in options.deviation],
    }
    named_ids = [group.id for found in named.values() for group in found]
    if twice := next((one for one in named_ids if named_ids.count(one) > 1), None):
        raise UsageError(f"group {twice} is named twice, expected one decision on it")
    if options.everything:
        named[Choice.ACCEPT] += [
            group
            for group in review.pending
            # --all with --reject ID accepts the others; groups that cannot be accepted stay
            # pending.
            if group.id not in named_ids and not review.find_refusal(group, Choice.ACCEPT)
        ]
    return [
        review.make_decision(group, choice, options.terms)
        for choice, found in named.items()
        for group in found
    ]


def _export(review: Review, outcomes: Outcomes, options: ReviewOptions) -> None:
    """Write the outcomes as patches with `--export`, and the review as Markdown with `--body`."""
    if options.patch is not None:
        if not outcomes.sources and not any(plan.documents for plan in outcomes.plans):
            raise UsageError("--export: no decision changes a golden or a case file; decide first")
        # The repository is found from a case file: a new golden folder does not exist yet.
        cases = next(m.job.case.file for m in review.data.jobs)
        when = datetime.now(UTC).isoformat(timespec="seconds")
        write_file(
            "--export", options.patch, render_patches(find_repository(cases.parent), outcomes, when)
        )
    if options.markdown is not None:
        text = render_markdown(review.directory.id, review.decisions, outcomes, review.data)
        # A case may print half a surrogate pair, which UTF-8 cannot encode.
        write_file("--body", options.markdown, text.encode("utf-8", "replace"))
