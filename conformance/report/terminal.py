"""The final report in a terminal: families by releases, and the reasons of unexpected results."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from conformance.model.case import Policy
from conformance.model.outcome import Verdict
from conformance.model.record import IrStatus
from conformance.report.since_text import render_since
from conformance.report.summary import (
    IrGroup,
    collect_cell_notes,
    count_understood,
    count_verdicts,
    find_unsupported,
    group_irs,
    render_exclusions,
    render_exit,
    render_notes,
)
from conformance.report.text import LISTED, join_names, sanitize
from conformance.report.tracebacks import render_cause_tracebacks
from conformance.report.verdicts import LETTERS, WORST_FIRST
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from conformance.engine.runs.root_causes import RootCause
    from conformance.model.record import Record
    from conformance.model.run import RunCell
    from conformance.report.report import Report

    Rows = dict[str, dict[str, Counter[Verdict]]]


COLOURS = {
    Verdict.MATCH: "green",
    Verdict.KNOWN: "cyan",
    Verdict.DRIFTED: "green",
    Verdict.NEW: "blue",
    Verdict.EXCLUDED: "bright_black",
    Verdict.REGRESSED: "bold red",
    Verdict.FIXED: "bold magenta",
    Verdict.CHANGED: "bold yellow",
    Verdict.FLAKY: "bold yellow",
    Verdict.CRASHED: "bold red",
    Verdict.TIMED_OUT: "bold red",
    Verdict.STALE: "bold yellow",
    Verdict.INFRA: "bold blue",
}
"""Style of a verdict, in addition to its letter."""
MAX_COLUMNS = 6
"""Number of cells up to which cells are the columns of the table; more cells are its rows."""
MIN_TIMELINE = 10
"""Cells in a line of a timeline, however narrow the terminal."""
WIDEST = 10_000
"""Columns of a table that is only measured."""
LONGEST = 4_000
"""Characters of one reason."""
NAMED = 10
"""Cases of a root cause that are named."""
WARNED = 5
"""Groups of IRs with warnings that are shown without `--verbose`."""


def print_report(
    console: Console,
    report: Report,
    *,
    directory: Path,
    verbose: bool = False,
) -> None:
    """Print the report of a run.

    Args:
        console: Console to print to.
        report: The runs to report.
        directory: Directory of the run, or of the newest of several runs.
        verbose: True for a row for each case instead of each family.
    """
    records = report.records
    # A cell that could not run hides what JAX does: it comes before all else.
    hosts = [cause for cause in report.causes if not cause.is_about_jax]
    _print_causes(console, report, hosts, verbose=verbose)
    # A reader of a nightly run looks for changes first.
    _print_since(console, report)
    rows = _count_rows(records, verbose=verbose)
    labels = label_cells(report.cells)
    table = (
        _tabulate_families(rows, labels)
        if len(labels) <= MAX_COLUMNS
        else _tabulate_cells(rows, labels)
    )
    # rich never measures a table as wider than its console, so the console is made wider: a table
    # that does not fit would be cut, and becomes a timeline instead.
    anywhere = console.options.update(max_width=WIDEST)
    if not verbose and console.measure(table, options=anywhere).maximum <= console.width:
        console.print(table)
    else:
        for text in _render_timelines(rows, labels, console.width):
            console.print(text, soft_wrap=True)
    console.print(_render_legend(records))
    telling = [cause for cause in report.causes if cause.is_about_jax]
    _print_causes(console, report, telling, verbose=verbose)
    for text in _render_irs(group_irs(report.cases, records), verbose=verbose):
        console.print(text, soft_wrap=True)
    for line in render_exclusions((*report.exclusions, *find_unsupported(records))):
        console.print(Text(sanitize(line, LONGEST), style="bright_black"), soft_wrap=True)
    tally = ", ".join(f"{number} {verdict}" for verdict, number in count_verdicts(records).items())
    cached = sum(record.cached for record in records)
    unchanged = f" ({cached} unchanged since an earlier run)" if cached else ""
    unfinished = f"; {len(report.not_run)} did not run" if report.not_run else ""
    console.print(f"{tally}{unchanged}{unfinished}", soft_wrap=True)
    for line in (*_summarize_irs(records), *render_notes(records)):
        console.print(line, soft_wrap=True)
    notes = [f"note: {note}" for note in collect_cell_notes(report.cells)]
    for line in (*notes, *render_exit(report)):
        console.print(Text(sanitize(line, LONGEST)), soft_wrap=True)
    console.print(f"results in {directory}", soft_wrap=True, style="bright_black")


def _print_since(console: Console, report: Report) -> None:
    lines = [] if report.since is None else [*render_since(report.since)]
    if why := report.not_compared:
        lines.append(f"not compared with an earlier run: {why}")
    for line in lines:
        console.print(Text(sanitize(line, LONGEST)), soft_wrap=True)


def _print_causes(
    console: Console, report: Report, causes: Iterable[RootCause], *, verbose: bool
) -> None:
    for cause in causes:
        console.print(_render_group(cause.reason, cause.records), soft_wrap=True)
        for line in render_cause_tracebacks(report.render_traceback, cause.records, every=verbose):
            console.print(Text(f"  {line}", style="bright_black"), soft_wrap=True)


def _count_rows(records: Sequence[Record], *, verbose: bool) -> Rows:
    rows: Rows = {}
    for record in records:
        row = record.case if verbose else record.case.partition("/")[0]
        rows.setdefault(row, {}).setdefault(record.cell, Counter())[record.verdict] += 1
    return rows


def _tabulate_families(rows: Rows, labels: Mapping[str, str]) -> Table:
    table = _make_table("family", (label.replace(" ", "\n") for label in labels.values()))
    for name in sorted(rows):
        table.add_row(name, *(_render_counts(rows[name].get(cell, Counter())) for cell in labels))
    return table


def _tabulate_cells(rows: Rows, labels: Mapping[str, str]) -> Table:
    families = sorted(rows)
    # A family's name is longer than its counts: broken at an underscore it needs half as much.
    table = _make_table("cell", (_break_name(name) for name in families))
    for cell, label in labels.items():
        table.add_row(
            label, *(_render_counts(rows[name].get(cell, Counter())) for name in families)
        )
    return table


def _make_table(first: str, others: Iterable[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in (first, *others):
        table.add_column(Text(heading), no_wrap=True)
    return table


def _break_name(name: str) -> str:
    words = name.split("_")
    half = (len(words) + 1) // 2
    return "\n".join("_".join(part) for part in (words[:half], words[half:]) if part)


def _render_counts(found: Counter[Verdict]) -> Text:
    marks = [
        Text(f"{found[verdict]}{LETTERS[verdict]}", style=COLOURS[verdict])
        for verdict in Verdict
        if found[verdict]
    ]
    return Text(" ").join(marks)


def _render_timelines(rows: Rows, labels: Mapping[str, str], width: int) -> Iterator[Text]:
    """Yield a line for each row with the worst verdict of each cell, in blocks that fit."""
    title = "a letter a cell:"
    margin = max(map(len, (title, *rows))) + 2
    room = max(MIN_TIMELINE, width - margin)
    cells = list(labels)
    for start in range(0, len(cells), room):
        block = cells[start : start + room]
        names = f"{labels[block[0]]} .. {labels[block[-1]]}"
        yield Text(f"{title:{margin}}{names}", style="bold")
        for name in sorted(rows):
            line = Text(f"{name:{margin}}")
            for cell in block:
                found = rows[name].get(cell, Counter())
                worst = next((v for v in WORST_FIRST if found[v]), Verdict.EXCLUDED)
                line.append(LETTERS[worst], style=COLOURS[worst])
            yield line


def label_cells(cells: Sequence[RunCell]) -> dict[str, str]:
    """Return a short name for each cell: its release, and the factors that distinguish it.

    Factors that all cells have are left out, and the Python that all cells of a release have.
    """
    factors = {cell.id: cell.id.split("-")[1:] for cell in cells}
    of_all = _find_shared(factors.values())
    releases: dict[str, list[list[str]]] = {}
    for cell in cells:
        releases.setdefault(cell.release, []).append(factors[cell.id])
    labels = {}
    for cell in cells:
        of_release = _find_shared(releases[cell.release])
        # JAX 0.11 needs a newer Python than 0.10, so over all releases the Python differs.
        silent = of_all | {factor for factor in of_release if factor.startswith("py")}
        own = [factor for factor in factors[cell.id] if factor not in silent]
        labels[cell.id] = " ".join([cell.label, *own])
    return labels


def _find_shared(factors: Iterable[Sequence[str]]) -> set[str]:
    each = [set(own) for own in factors]
    return set.intersection(*each) if each else set()


def _render_legend(records: Sequence[Record]) -> Text:
    text = Text()
    for verdict in count_verdicts(records):
        text.append(f"{LETTERS[Verdict(verdict)]} {verdict}  ", style=COLOURS[Verdict(verdict)])
    return text


def _render_group(reason: str, members: Sequence[Record]) -> Text:
    first = members[0]
    text = Text("\n")
    text.append(f"{first.verdict}", style=COLOURS[first.verdict])
    cells = list(dict.fromkeys(member.cell for member in members))
    cases = {member.case for member in members}
    what = first.case if len(cases) == 1 else plural(len(cases), "case")
    text.append(sanitize(f" {what} on {join_names(cells)}\n  {reason}", LONGEST))
    for more in first.reasons[1:]:
        text.append(sanitize(f"\n  {more}", LONGEST))
    text.append(_render_names(members))
    if first.error is not None and first.error.where:
        text.append(sanitize(f"\n  at {first.error.where}"), style="bright_black")
    return text


def _render_names(members: Sequence[Record]) -> str:
    """Return a line with the names of the cases of a group; empty for a single case."""
    # The heading of the group names a single case.
    names = list(dict.fromkeys(member.case for member in members))
    return f"\n  {sanitize(join_names(names, NAMED), LONGEST)}" if len(names) > 1 else ""


def _render_ir_group(group: IrGroup) -> Text:
    text = Text("\n")
    warns = group.policy is Policy.WARN
    text.append(f"{group.policy}", style="bold yellow" if warns else "bright_black")
    cases = {record.case for record in group.records}
    what = next(iter(cases)) if len(cases) == 1 else plural(len(cases), "case")
    cells = list(dict.fromkeys(record.cell for record in group.records))
    text.append(f" {group.ir} of {what} on {join_names(cells)} is not its golden")
    text.append(_render_names(group.records))
    for change in group.changes[:LISTED]:
        text.append(f"\n  {sanitize(change, LONGEST)}")
    if len(group.changes) > LISTED:
        text.append(f"\n  and {len(group.changes) - LISTED} more", style="bright_black")
    return text


def _render_irs(groups: Sequence[IrGroup], *, verbose: bool) -> Iterator[Text]:
    """Yield the groups of IRs that differ from their goldens; of many warnings, the largest."""
    shown = [group for group in groups if verbose or group.policy is not Policy.INFORM]
    warnings = [group for group in shown if group.policy is Policy.WARN]
    folded = [] if verbose else warnings[WARNED:]
    yield from (_render_ir_group(group) for group in shown if group not in folded)
    if folded:
        number = sum(len(group.records) for group in folded)
        yield Text(
            f"\nand {plural(number, 'more IR')} in {plural(len(folded), 'group')} "
            "not as their goldens: --verbose lists them",
            style="bright_black",
        )


def _summarize_irs(records: Sequence[Record]) -> Iterator[str]:
    """Yield how many IRs were understood, and how many differ from their goldens."""
    seen, whole = count_understood(records)
    if not seen:
        return
    found = Counter((ir, result.status) for r in records for ir, result in r.ir.items())
    changed = [
        f"{ir} {number} {status}"
        for (ir, status), number in sorted(found.items())
        if status in {IrStatus.CHANGED, IrStatus.REGROUPED}
    ]
    yield "; ".join([f"{whole} of {seen} IRs understood", *changed])
