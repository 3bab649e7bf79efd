"""What decisions come to as commits and as Markdown: case files first, then goldens alone."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from conformance.errors import UsageError
from conformance.golden.accept import Change
from conformance.golden.sweep import unreferenced
from conformance.report.markup import block, code
from conformance.report.text import one_line
from conformance.review.decisions import Choice
from conformance.review.evidence import described, evidence_of
from conformance.review.patch import Commit, patches, tracked, uncommitted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.review.decisions import Chosen
    from conformance.review.evidence import Files
    from conformance.review.writing import Outcomes

_SUBJECT: Final = 72
_LINE: Final = 200
_NAMED: Final = 3
_BODY: Final = 60_000
"""Characters of a pull request's body, of which hosts take 65,536."""
_EVIDENCE: Final = 4_000
_WORDS: Final = {
    Choice.ACCEPT: "accepted",
    Choice.DEVIATION: "declared",
    Choice.REJECT: "rejected",
}


def golden_files(done: Outcomes, root: Path) -> dict[Path, bytes | None]:
    """Return the golden files that would be written, and as None those that would go.

    Args:
        done: What decisions come to.
        root: Root of the repository.
    """
    files: dict[Path, bytes | None] = {}
    for plan in done.plans:
        files |= plan.contents
        files |= {file: text.encode() for file, text in plan.documents.items()}
        for folder in {file.parent for file in plan.documents}:
            planned = {f: text for f, text in plan.documents.items() if f.parent == folder}
            gone = set(unreferenced(folder, planned)) - set(plan.contents)
            files |= dict.fromkeys(gone & tracked(root, [folder]))
    return files


def exported(root: Path, done: Outcomes, when: str) -> bytes:
    """Return what decisions come to as patches on top of the last commit.

    Args:
        root: Root of the repository.
        done: What decisions come to.
        when: Date of the commits, ISO 8601.

    Raises:
        UsageError: If a file concerned is not as in the last commit, or is in another repository.
    """
    goldens = golden_files(done, root)
    folders = sorted({file.parent for file in goldens})
    for path in (*done.sources, *folders):
        if not path.resolve().is_relative_to(root.resolve()):
            raise UsageError(f"{path} is not below {root}; review the cases of one repository")
    if dirty := uncommitted(root, [*done.sources, *(f for f in folders if f.exists())]):
        raise UsageError(
            f"{root / dirty[0]} is not as in the last commit, which patches are made on; "
            "commit it first"
        )
    commits = []
    if done.sources:
        commits.append(Commit(message=_message(done, Choice.DEVIATION), files=dict(done.sources)))
    if goldens:
        commits.append(Commit(message=_message(done, Choice.ACCEPT), files=goldens))
    return patches(root, commits, when) if commits else b""


def _message(done: Outcomes, about: Choice) -> str:
    """Return the message of the commit of case files, or of that of goldens."""
    if about is Choice.DEVIATION:
        told = [one for one in done.decisions if one.decision.choice is about]
        subject = f"fix: deviations of {_names(told)}"
    else:
        told = list(done.decisions)
        subject = f"golden: {_names(told)}"
    # Each line is indented or begins with a sign of ours: nothing in it is read as a patch.
    lines = [line for one in told for line in _decision_lines(one)]
    if about is Choice.ACCEPT:
        lines.append(f"Spans of goldens: {tally(done)}.")
    return "\n".join([_short(subject), "", *lines]) + "\n"


def _decision_lines(one: Chosen) -> Iterator[str]:
    decision = one.decision
    yield f"* {_WORDS[decision.choice]} {decision.group}, {one.group.size}"
    yield f"  what: {one_line(one.group.title, _LINE)}"
    if decision.reason:
        yield f"  why: {one_line(decision.reason, _LINE)}"
    if decision.issue:
        yield f"  issue: {one_line(decision.issue, _LINE)}"
    yield f"  by: {one_line(decision.by, _LINE)}, {decision.at}"


def _names(told: Sequence[Chosen]) -> str:
    cases = dict.fromkeys(m.record.case.partition("[")[0] for one in told for m in one.members)
    names = list(cases)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _short(subject: str) -> str:
    told = one_line(subject)
    return told if len(told) <= _SUBJECT else f"{told[: _SUBJECT - 3]}..."


def tally(done: Outcomes) -> str:
    """Return how many spans are added, changed, extended and unchanged."""
    found = Counter(entry.change for plan in done.plans for entry in plan.entries)
    return ", ".join(f"{found[change]} {change}" for change in Change)


def body(run: str, decided: Sequence[Chosen], done: Outcomes, files: Files) -> str:
    """Return Markdown for a pull request: what, why, who decided, and the evidence.

    Args:
        run: Name of the run.
        decided: All decisions, those that reject among them.
        done: What they come to.
        files: What evidence is read from.
    """
    head = [f"Review of the run {code(run)}: {_counted(decided)}.", f"Goldens: {tally(done)}."]
    head += [f"- not taken: {code(_told(refused))}" for refused in _told_refused(done)]
    parts = ["\n\n".join(head[:2]), "\n".join(head[2:])]
    left = 0
    for one in decided:
        part = _part(one, done, files)
        if sum(map(len, parts)) + len(part) > _BODY:
            left += 1
        else:
            parts.append(part)
    if left:
        parts.append(f"*{left} more decisions are left out here; they are in the commits.*")
    return "\n\n".join(filter(None, parts)) + "\n"


def _told_refused(done: Outcomes) -> Mapping[tuple[str, str], int]:
    return Counter((one.reason, one.member.record.cell) for one in done.refused)


def _told(refused: tuple[str, str]) -> str:
    reason, cell = refused
    return f"{cell}: {reason}"


def _counted(decided: Sequence[Chosen]) -> str:
    found = Counter(one.decision.choice for one in decided)
    words = [f"{found[choice]} {_WORDS[choice]}" for choice in Choice if found[choice]]
    return ", ".join(words) or "nothing is decided"


def _part(one: Chosen, done: Outcomes, files: Files) -> str:
    decision = one.decision
    told = [f"### {_WORDS[decision.choice].capitalize()}: {code(one.group.title)}"]
    facts = [f"- {one.group.size}, {code(decision.group)}"]
    if decision.reason:
        facts.append(f"- why: {code(decision.reason)}")
    if decision.issue:
        facts.append(f"- issue: {code(decision.issue)}")
    facts += [f"- {code(described(edit))}" for edit in done.declarations.get(one.group.id, ())]
    facts.append(f"- decided by {code(decision.by)} at {decision.at}")
    evidence = "\n".join(text for text, _ in evidence_of(one.group, files))
    shown = block(evidence, _EVIDENCE)
    details = f"<details><summary>evidence</summary>\n\n{shown}\n\n</details>"
    return "\n\n".join([*told, "\n".join(facts), details])
