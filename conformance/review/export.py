"""Outcomes of decisions as commits and as Markdown: case files first, then goldens alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.golden.cleanup import find_unreferenced
from conformance.report.markup import block, code
from conformance.report.text import listed, one_line
from conformance.review.decisions import Choice
from conformance.review.evidence import collect_evidence
from conformance.review.patch import Commit, patches, tracked, uncommitted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from conformance.review.decisions import OpenDecision
    from conformance.review.outcomes import Outcomes
    from conformance.review.run_data import RunData

_SUBJECT: Final = 72
_LINE: Final = 200
_BODY: Final = 60_000
"""Characters of a pull request's body, of which hosts take 65,536."""
_EVIDENCE: Final = 4_000
WORDS: Final = {
    Choice.ACCEPT: "accepted",
    Choice.DEVIATION: "declared",
    Choice.REJECT: "rejected",
}


def render_patches(root: Path, outcomes: Outcomes, when: str) -> bytes:
    """Return outcomes as patches on top of the last commit.

    Args:
        root: Root of the repository.
        outcomes: The outcomes.
        when: Date of the commits, ISO 8601.

    Raises:
        UsageError: If a file concerned is not as in the last commit, or is in another repository.
    """
    goldens = _golden_files(outcomes, root)
    folders = sorted({file.parent for file in goldens})
    for path in (*outcomes.sources, *folders):
        if not path.resolve().is_relative_to(root.resolve()):
            raise UsageError(f"{path} is not below {root}; review the cases of one repository")
    if dirty := uncommitted(root, [*outcomes.sources, *(f for f in folders if f.exists())]):
        raise UsageError(
            f"{root / dirty[0]} is not as in the last commit, which patches are made on; "
            "commit it first"
        )
    declared = [one for one in outcomes.decisions if one.decision.choice is Choice.DEVIATION]
    spans = [f"Spans of goldens: {outcomes.tally}."]
    commits = (
        Commit(message=_message("fix: deviations of", declared), files=outcomes.sources),
        Commit(message=_message("golden:", outcomes.decisions, spans), files=goldens),
    )
    found = [commit for commit in commits if commit.files]
    return patches(root, found, when) if found else b""


def _golden_files(outcomes: Outcomes, root: Path) -> dict[Path, bytes | None]:
    """Return the golden files that would be written; None for those that would be removed."""
    files: dict[Path, bytes | None] = {}
    for plan in outcomes.plans:
        files |= plan.contents
        files |= {file: text.encode() for file, text in plan.documents.items()}
        for folder in {file.parent for file in plan.documents}:
            gone = set(find_unreferenced(folder, plan.documents)) - set(plan.contents)
            files |= dict.fromkeys(gone & tracked(root, [folder]))
    return files


def _message(start: str, decisions: Sequence[OpenDecision], more: Iterable[str] = ()) -> str:
    """Return the message of a commit for some decisions."""
    cases = (job.record.case.partition("[")[0] for one in decisions for job in one.members)
    subject = one_line(f"{start} {listed(list(dict.fromkeys(cases)))}")
    if len(subject) > _SUBJECT:
        subject = f"{subject[: _SUBJECT - 3]}..."
    # Each line is indented or begins with a mark: nothing in it is read as a patch.
    lines = [line for one in decisions for line in _decision_lines(one)]
    return "\n".join([subject, "", *lines, *more]) + "\n"


def _decision_lines(one: OpenDecision) -> Iterator[str]:
    decision = one.decision
    yield f"* {WORDS[decision.choice]} {decision.group}, {one.group.size}"
    yield f"  what: {one_line(one.group.title, _LINE)}"
    if decision.reason:
        yield f"  why: {one_line(decision.reason, _LINE)}"
    if decision.issue:
        yield f"  issue: {one_line(decision.issue, _LINE)}"
    yield f"  by: {one_line(decision.by, _LINE)}, {decision.at}"


def render_markdown(
    run: str, decisions: Sequence[OpenDecision], outcomes: Outcomes, data: RunData
) -> str:
    """Return Markdown for a pull request: what, why, who decided, and the evidence.

    Args:
        run: Name of the run.
        decisions: All decisions, those that reject included.
        outcomes: Their outcomes.
        data: Data of the run.
    """
    found = Counter(one.decision.choice for one in decisions)
    counts = ", ".join(f"{found[choice]} {WORDS[choice]}" for choice in Choice if found[choice])
    parts = [f"Review of the run {code(run)}: {counts or 'nothing is decided'}."]
    parts.append(f"Goldens: {outcomes.tally}.")
    refused = dict.fromkeys(f"{job.record.cell}: {job.refusal}" for job in outcomes.refused)
    parts += ["\n".join(f"- not taken: {code(text)}" for text in refused)] if refused else []
    left = 0
    for one in decisions:
        part = _part(one, outcomes, data)
        if sum(map(len, parts)) + len(part) > _BODY:
            left += 1
        else:
            parts.append(part)
    if left:
        parts.append(f"*{left} more decisions are left out here; they are in the commits.*")
    return "\n\n".join(parts) + "\n"


def _part(one: OpenDecision, outcomes: Outcomes, data: RunData) -> str:
    decision = one.decision
    facts = [f"- {one.group.size}, {code(decision.group)}"]
    if decision.reason:
        facts.append(f"- why: {code(decision.reason)}")
    if decision.issue:
        facts.append(f"- issue: {code(decision.issue)}")
    facts += [f"- {code(str(edit))}" for edit in outcomes.declarations.get(one.group.id, ())]
    facts.append(f"- decided by {code(decision.by)} at {decision.at}")
    evidence = "\n".join(line.plain for line in collect_evidence(one.group, data))
    return (
        f"### {WORDS[decision.choice].capitalize()}: {code(one.group.title)}\n\n"
        + "\n".join(facts)
        + f"\n\n<details><summary>evidence</summary>\n\n{block(evidence, _EVIDENCE)}\n\n</details>"
    )
