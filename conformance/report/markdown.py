"""A report in Markdown, for the summary of a CI job or an issue: the important first."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final

from conformance.engine.runs.transitions import COUNTED, ENDING, TransitionKind
from conformance.model.case import Policy
from conformance.model.outcome import Outcome, Verdict
from conformance.report.markup import (
    MOST_CODE,
    Section,
    SectionEntry,
    fence,
    fit_sections,
    fold,
    to_code,
    to_row,
)
from conformance.report.overview import collect_changes, make_overview
from conformance.report.since_text import (
    NEW,
    count_changes,
    describe_cause,
    format_age,
    format_day,
    group_causes,
    render_other_changes,
)
from conformance.report.summary import (
    EVERY,
    collect_cell_notes,
    collect_notes,
    find_unsupported,
    group_exclusions,
    group_irs,
    render_exit,
)
from conformance.report.text import make_rerun_command
from conformance.report.verdicts import LETTERS, WORST_FIRST
from conformance.triage.evidence import render_evidence
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from conformance.engine.runs.root_causes import RootCause
    from conformance.model.run_files import Since
    from conformance.report.overview import Overview, ReleaseChange, ReleaseChangeGroup
    from conformance.report.report import Report
    from conformance.report.summary import ExclusionGroup, IrGroup
    from conformance.report.tracks import Track

MOST: Final = 60_000
"""Characters of the whole: an issue holds 65,536, the summary of a job a mebibyte."""
SHOWN, MOST_ENDING, MOST_TRACEBACK = 3, 200, 4_000
"""Members of a group that are named, characters of an ending, characters of a traceback."""


def render_markdown(report: Report, most: int = MOST) -> str:
    """Return a report in Markdown.

    Args:
        report: The runs to report.
        most: Characters of the whole, at least 4,000; entries that do not fit are counted.
    """
    head = "\n\n".join(_render_head(make_overview(report), report))
    return fit_sections(head, list(_make_sections(report)), most)


def _render_head(story: Overview, report: Report) -> Iterator[str]:
    """Yield the paragraphs for a person who reads nothing else."""
    runs = report.runs
    headline = "nothing unexpected"
    if story.wrong:
        headline = f"{story.wrong:,} of {plural(story.jobs, 'job')} unexpected"
    elif story.infra or story.not_run or story.problems:
        headline = "nothing unexpected, but not all is known"
    yield f"# Conformance: {headline}"
    tally = ", ".join(f"{number:,} {verdict}" for verdict, number in story.counts.items())
    yield (
        f"{plural(story.jobs, 'job')} of {plural(story.cases, 'case')} on "
        f"{plural(len(story.releases), 'release')}: {tally or 'none'}. Says nothing about JAX: "
        f"{story.infra:,} ended for reasons of the host, {story.not_run:,} never ended."
    )
    if runs:
        others = f", and {len(runs) - 1:,} before it" if len(runs) > 1 else ""
        ended = f" of {to_code(story.ended, 40)}" if story.ended else ""
        yield f"Run {to_code(runs[-1].id)}{ended}{others}."
    # The lines are made for the terminal, where messages are in lower case without a full stop.
    for line in render_exit(report):
        yield f"{line[0].upper()}{line[1:]}."
    if why := report.not_compared:
        yield f"Not compared with an earlier run: {to_code(why)}."


def _make_sections(report: Report) -> Iterator[Section]:
    # Room goes to the sections in order: what a later section is short of, an earlier one took.
    if report.since is not None:
        yield _make_since(report.since)
    if report.problems:
        yield Section(
            head="## Runs that cannot be read",
            entries=[SectionEntry(partial(_render_bullet, problem)) for problem in report.problems],
            noun="runs",
            share=0.3,
        )
    causes = report.causes
    telling = [cause for cause in causes if cause.is_about_jax]
    if telling:
        yield Section(
            head=f"## Unexpected: {plural(len(telling), 'root cause')}",
            entries=[
                SectionEntry(partial(_render_cause, report, one), len(one.records))
                for one in telling
            ],
            noun="root causes",
            gap="\n\n",
            share=0.75,
        )
    # Apart from the section above, so that a fault of the host does not read as a fault of JAX.
    silent = [cause for cause in causes if not cause.is_about_jax]
    if silent or report.not_run:
        yield _make_indeterminate(report, silent)
    if noted := [*collect_cell_notes(report.cells), *collect_notes(report.records)]:
        yield Section(
            head=f"## To be known: {plural(len(noted), 'note')}",
            entries=[SectionEntry(partial(_render_bullet, note), 1) for note in noted],
            noun="notes",
            share=0.2,
        )
    yield from _make_irs(report)
    yield from _make_changes(report)
    if report.tracks and report.records:
        yield _make_table(report)
    yield from _make_exclusions(report)


def _make_since(since: Since) -> Section:
    """Render the changes since the last nightly run, new root causes first."""
    rows = [
        (
            f"**{kind}**",
            f"{describe_cause(one)}{format_age(one) if kind != NEW else ''}",
            len(one.jobs),
        )
        for kind, causes in group_causes(since).items()
        for one in causes
    ]
    entries = [
        SectionEntry(partial("- {} {}".format, kind, to_code(text, MOST_CODE)), jobs)
        for kind, text, jobs in rows
    ]
    entries += [SectionEntry(partial(_render_bullet, line)) for line in render_other_changes(since)]
    head = (
        f"## Since the last night: {count_changes(since)}\n\n"
        f"Compared with run {to_code(since.run)} of {to_code(format_day(since.started))}."
    )
    return Section(head=head, entries=entries, noun="lines", share=0.4)


def _render_bullet(text: str) -> str:
    return f"- {to_code(text)}"


def _render_cause(report: Report, cause: RootCause) -> str:
    """Render the jobs of a root cause, and the results of triage."""
    members, looked_into = cause.records, report.evidence.get(cause.id)
    first = members[0]
    cases = list(dict.fromkeys(member.case for member in members))
    cells = list(dict.fromkeys(member.cell for member in members))
    again = make_rerun_command(first.case, report.cases[first.case], report.selector(first.cell))
    reasons = [*first.reasons] or [str(first.outcome)]
    if first.error is not None and first.error.where:
        reasons.append(f"at {first.error.where}")
    lines = report.render_traceback(first)
    return "\n\n".join(
        [
            f"**{first.verdict}** {_join_names(cases)} on {_join_names(cells)}",
            fence("\n".join(reasons)),
            *([fold("Traceback", fence("\n".join(lines), MOST_TRACEBACK))] if lines else []),
            *(
                []
                if looked_into is None
                else [fence("\n".join(render_evidence(looked_into.found)))]
            ),
            f"again: {to_code(again)}",
        ]
    )


def _make_indeterminate(report: Report, causes: Sequence[RootCause]) -> Section:
    infra = sum(len(cause.records) for cause in causes)
    entries = [
        SectionEntry(partial(_render_cause, report, cause), len(cause.records)) for cause in causes
    ]
    if not_run := report.not_run:
        cases = list(dict.fromkeys(case for case, _ in not_run))
        cells = list(dict.fromkeys(cell for _, cell in not_run))
        text = f"**{Outcome.NOT_RUN}** {_join_names(cases)} on {_join_names(cells)}"
        # One entry for all of them: an interrupted run may leave thousands of jobs.
        entries.append(SectionEntry(lambda: text, len(not_run)))
    return Section(
        head=f"## Says nothing about JAX: {infra:,} {Verdict.INFRA}, {len(not_run):,} not run",
        entries=entries,
        noun="groups",
        gap="\n\n",
        share=0.4,
    )


def _make_changes(report: Report) -> Iterator[Section]:
    total = Counter(point.kind for _, _, point in report.points())
    if not total:
        return
    counts = ", ".join(f"{total[kind]:,} {kind}" for kind in COUNTED if total[kind])
    alone = (
        f"in {total[TransitionKind.SAME]:,} more an IR alone changed"
        if total[TransitionKind.SAME]
        else ""
    )
    summary = "; ".join(part for part in (counts, alone) if part)
    yield Section(
        head=f"## Changes between releases\n\nAgainst the release before: {summary}.",
        entries=[
            SectionEntry(partial(_render_change, group), group.points)
            for group in collect_changes(report)
        ],
        noun="changes",
        share=0.5,
    )


def _render_change(group: ReleaseChangeGroup) -> str:
    change = group.change
    where = f"{_join_names(group.cases)} on {_join_names(group.tracks)}"
    difference = _describe_difference(change)
    return f"- **{change.kind}** in {to_code(change.release)}: {difference}\n  {where}"


def _describe_difference(change: ReleaseChange) -> str:
    before, after = (to_code(ending, MOST_ENDING) for ending in change.endings)
    if ENDING in change.artifacts:
        # Equal endings are the type of two errors with different messages.
        return f"another message of {after}" if before == after else f"{before} became {after}"
    other = "another" if len(change.artifacts) == 1 else "other"
    return f"{other} {', '.join(change.artifacts)}"


def _make_irs(report: Report) -> Iterator[Section]:
    every = group_irs(report.cases, report.records)
    # IRs that only inform change in most releases, and would fill the summary.
    groups = [group for group in every if group.policy is Policy.WARN]
    if groups:
        jobs = sum(len(group.records) for group in groups)
        yield Section(
            head=f"## IRs that are not their goldens: {plural(jobs, 'warning')}",
            entries=[
                SectionEntry(partial(_render_ir, group), len(group.records)) for group in groups
            ],
            noun="groups",
            gap="\n\n",
            share=0.4,
        )


def _render_ir(group: IrGroup) -> str:
    cases = list(dict.fromkeys(record.case for record in group.records))
    cells = list(dict.fromkeys(record.cell for record in group.records))
    text = f"**{group.ir}** of {_join_names(cases)} on {_join_names(cells)}"
    return f"{text}\n\n{fence(chr(10).join(group.changes))}" if group.changes else text


def _make_table(report: Report) -> Section:
    """Return a table with a column for each family and rows for the releases of each track."""
    families = list(report.families)
    found: defaultdict[tuple[str, str], Counter[Verdict]] = defaultdict(Counter)
    for record in report.records:
        found[record.cell, record.case.partition("/")[0]][record.verdict] += 1
    rows = [cells for track in report.tracks for cells in _make_rows(track, families, found)]
    heading = ["track", "release", *map(to_code, families)]
    widths = [max(map(len, column)) for column in zip(heading, *rows, strict=True)]
    seen = {verdict for counter in found.values() for verdict in counter}
    legend = ", ".join(f"{to_code(LETTERS[v])} {v}" for v in WORST_FIRST if v in seen)
    dashes = ["-" * width for width in widths]
    return Section(
        head=f"## Families by release\n\nJobs by verdict: {legend}.",
        opening="\n".join(to_row(cells, widths) for cells in (heading, dashes)),
        entries=[SectionEntry(partial(to_row, cells, widths)) for cells in rows],
        noun="rows",
        share=0.8,
    )


def _make_rows(
    track: Track, families: Sequence[str], found: Mapping[tuple[str, str], Counter[Verdict]]
) -> list[list[str]]:
    """Return the rows of a track, the newest first; equal neighbouring releases share a row."""
    # Rows of equal neighbours would say the same for each of more than 30 releases.
    rows: list[tuple[list[str], list[str]]] = []
    for cell in reversed(track.cells):
        texts = [_render_letters(found.get((cell.id, family), Counter())) for family in families]
        # A cell without any record, such as one that was excluded as a whole, has no row.
        if not any(texts):
            continue
        release = cell.label
        if rows and rows[-1][1] == texts:
            rows[-1][0].append(release)
        else:
            rows.append(([release], texts))
    return [[to_code(track.name), _render_span(releases), *texts] for releases, texts in rows]


def _render_span(releases: Sequence[str]) -> str:
    """Return the range of neighbouring releases, given the newest first."""
    if len(releases) == 1:
        return to_code(releases[0])
    return f"{to_code(releases[-1])} to {to_code(releases[0])}"


def _render_letters(found: Counter[Verdict]) -> str:
    text = " ".join(f"{found[v]}{LETTERS[v]}" for v in WORST_FIRST if found[v])
    return to_code(text) if text else ""


def _make_exclusions(report: Report) -> Iterator[Section]:
    found = (*report.exclusions, *find_unsupported(report.records))
    groups = group_exclusions(found)
    if groups:
        yield Section(
            # Head and end are always shown, so a cut section still closes its element.
            head=f"<details><summary>{plural(len(found), 'exclusion')}, "
            f"for {plural(len(groups), 'reason')}</summary>",
            entries=[
                SectionEntry(partial(_render_exclusion, group), group.pairs) for group in groups
            ],
            noun="reasons",
            end="</details>",
        )


def _render_exclusion(group: ExclusionGroup) -> str:
    cells = plural(len(group.cells), "cell")
    if EVERY in group.cases:
        return f"- {to_code(group.reason)}: {EVERY} in {cells}, such as {to_code(group.cells[0])}"
    cases = plural(len(group.cases), "case")
    example = f"{to_code(group.cases[0])} on {to_code(group.cells[0])}"
    return f"- {to_code(group.reason)}: {cases} in {cells}, such as {example}"


def _join_names(names: Sequence[str]) -> str:
    shown = ", ".join(to_code(name, 150) for name in names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN:,} more" if len(names) > SHOWN else shown
