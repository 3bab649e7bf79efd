"""The evidence for a decision on a group, as lines: differences, places, causes, choices."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from conformance.engine.blobs import CorruptBlobError
from conformance.judge.verdict import IF_INTENDED
from conformance.model.codec import CorruptValueError
from conformance.review.differences import describe_differences
from conformance.review.groups import GroupKind
from conformance.review.lines import HEAD, QUIET, WARNING, indent_below, limit_lines, line, section
from conformance.review.release_ranges import format_spans
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from rich.text import Text

    from conformance.model.evidence import Evidence
    from conformance.review.groups import ReviewGroup
    from conformance.review.judged_jobs import JudgedJob
    from conformance.review.run_data import RunData

_REASONS: Final = 8
_CASES: Final = 60


def collect_evidence(group: ReviewGroup, data: RunData) -> list[Text]:
    """Return the evidence for and against a group, in lines.

    Args:
        group: The group.
        data: Data of its run.
    """
    parts = [_reasons(group), _places(group, data), _upstream(group)]
    try:
        parts.append(describe_differences(group.members[0], data.new_judge(), data.blobs))
    except (CorruptBlobError, CorruptValueError) as error:
        parts.append([line(str(error), WARNING)])
    if group.id in data.triage:
        found = data.triage[group.id]
        title = f"found out by conformance triage, from {found.case} on {found.cell}"
        parts.append(section(title, _triage(found)))
    if group.id in data.rejected:
        run, decision = data.rejected[group.id]
        who = line(f"{decision.by}, {decision.at}: {decision.reason}")
        parts.append(section(f"rejected before, in the run {run}", [who]))
    parts.append(section("what can be decided", _choices(group, data)))
    lines = [shown for part in parts if part for shown in (line(""), *part)]
    return lines[1:]


def _reasons(group: ReviewGroup) -> list[Text]:
    found = Counter(
        reason.partition(IF_INTENDED)[0] for one in group.members for reason in one.record.reasons
    )
    lines = [
        line(f"{reason}{f'  (x{number})' if number > 1 else ''}")
        for reason, number in found.most_common()
    ]
    is_ir = group.kind is GroupKind.IR
    title = f"{'an IR changed' if is_ir else group.verdict}: {group.size}"
    shown = limit_lines(lines, _REASONS, "and {} more reasons")
    if is_ir:
        shown.append(line(group.title))
    return indent_below(line(title, HEAD), shown)


def _places(group: ReviewGroup, data: RunData) -> list[Text]:
    by_case: dict[str, list[JudgedJob]] = {}
    for one in group.members:
        by_case.setdefault(one.record.case, []).append(one)
    lines = [
        line(f"{case} on {format_places(jobs, data.releases)}") for case, jobs in by_case.items()
    ]
    return section("where", limit_lines(lines, _CASES, "and {} more cases"))


def format_places(jobs: Iterable[JudgedJob], known: Collection[str]) -> str:
    """Return the cells of some jobs, releases as ranges: `0.5.0..0.6.2 (py311-cpu8)`.

    Args:
        jobs: The jobs.
        known: Every release that there could be in a range.
    """
    by_factors: dict[str, set[str]] = {}
    paths: dict[str, None] = {}
    for one in jobs:
        cell = one.record.cell
        if cell.startswith("path-"):
            paths[f"{cell} (jax {one.release})"] = None
        else:
            # The Python follows the release: it does not set cells apart.
            by_factors.setdefault("-".join(cell.split("-")[2:]), set()).add(one.release)
    ranges = [f"jax {format_spans(found, known)} ({rest})" for rest, found in by_factors.items()]
    return "; ".join([*ranges, *paths])


def _upstream(group: ReviewGroup) -> list[Text]:
    facts: dict[str, None] = {}
    for one in group.members:
        case = one.job.case
        if case.source:
            facts[f"{case.id.partition('[')[0]} comes from {case.source}"] = None
        for deviation in case.deviations:
            issue = f" ({deviation.issue})" if deviation.issue else ""
            where = f"jax{deviation.releases}" if deviation.releases else "every release"
            reason = f": {deviation.reason}" if deviation.reason else ""
            facts[f"declared for {where}{reason}{issue}"] = None
    first = group.members[0].job.case
    summary = first.doc.partition("\n")[0]
    texts = [*([summary] if summary else []), *list(facts)[:_CASES]]
    return section(f"about {first.id.partition('[')[0]}", map(line, texts))


def _triage(found: Evidence) -> Iterator[Text]:
    if found.first_bad:
        last = f" (last good {found.last_good})" if found.last_good else ""
        yield line(f"first bad {found.first_bad}{last}{', confirmed' if found.confirmed else ''}")
    for one in found.culprits:
        yield line(f"culprit {one.package} {one.before} -> {one.after}")
    if found.repro:
        yield line(f"reproduction {found.repro}: {found.command}")
    for text in found.untold:
        yield line(f"not found out: {text}", QUIET)


def _choices(group: ReviewGroup, data: RunData) -> Iterator[Text]:
    """Yield the effect of each decision; for those that are refused, why."""
    refused = Counter(one.refusal for one in group.members if one.refusal)
    total = len(group.members)
    if number := total - refused.total():
        yield line(f"accept: takes {number} of {plural(total, 'job')}")
    for reason, count in refused.items():
        yield line(f"accept: refuses {count}: {reason}")
    proposal = data.proposal(group)
    if proposal.refusal:
        yield line(f"deviation: no, {proposal.refusal}")
    for one in proposal.declarations:
        yield line(f"deviation: {one}")
