"""Differences of IRs in a terminal: patterns in words, the gravest first, with example lines."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from conformance.engine.job_comparison import group_by_changes
from conformance.engine.runs.transitions import COUNTED, TransitionKind
from conformance.judge.ir import find_changed_facts
from conformance.report.diff_data import TextDiff
from conformance.report.ir_differences import (
    QUIET,
    align_lines,
    compare_facts,
    describe_alignment,
    fit_line,
    render_title,
    style_line,
    summarize_difference,
)
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from conformance.engine.job_comparison import (
        ComparisonGroup,
        IrComparison,
        IrLevel,
        JobComparison,
    )
    from conformance.engine.runs.transitions import Transition
    from conformance.ir.change import Change, IrDiff
    from conformance.report.diff_data import JobsDiff
    from conformance.report.ir_differences import StyledLine

_Line: TypeAlias = "tuple[Text, StyledLine]"
T = TypeVar("T")
BEFORE, AFTER = "red", "green"
WIDE: Final = 140
"""Columns from which before and after are shown side by side."""
POOR: Final = 0.7
"""Share of aligned instructions below which a warning is shown: the patterns are guesses then."""
LINES, FACTS, UNKNOWN, JOBS, GROUPS, PATTERNS, EXAMPLES = 4, 8, 3, 3, 30, 20, 6
"""Number of each that is shown without `--full`."""
INDENT, MARGIN = 4, 48


TALLY = ("equal", "same work grouped otherwise", "different")


class Detail(StrEnum):
    """Level of detail of a difference."""

    PATTERNS = "patterns"
    """A line for each pattern."""
    SHORT = "short"
    """Patterns with a few of their lines, and the facts that gate."""
    FULL = "full"
    """Everything."""


class DiffReport:
    """Prints differences.

    Args:
        console: Console to print to; if it is no terminal, lines are neither folded nor cut.
        level: Equality of IRs that counts.
        detail: Level of detail.
    """

    def __init__(self, console: Console, level: IrLevel, detail: Detail) -> None:
        self._console = console
        self._level = level
        self._detail = detail
        self._full = detail is Detail.FULL
        self._names_cells = True

    def show(self, found: TextDiff | JobsDiff) -> None:
        """Print how two texts, or jobs, differ.

        Args:
            found: The difference.
        """
        # With `--only-changed` jobs have no IRs to show, so even a single job is listed.
        if isinstance(found, TextDiff):
            self.print_texts(found.names, found.diff)
            return
        if len(found.jobs) == 1 and not found.only_changed:
            self.print_job(found.jobs[0])
        else:
            groups = group_by_changes(found.jobs, self._level)
            self.print_jobs(found.names, found.jobs, groups, found.transitions)
        for name, jobs in zip(found.names, found.alone, strict=True):
            self.print_unmatched(name, jobs)

    def print_texts(self, names: tuple[str, str], diff: IrDiff) -> None:
        """Print how two texts differ.

        Args:
            names: Names of both texts.
            diff: The difference.
        """
        self._print_line(Text(" -> ".join(names), style="bold"))
        self._print_ir(diff.kind, diff)

    def print_job(self, job: JobComparison) -> None:
        """Print how two jobs of one case differ."""
        self._print_line(Text(job.id, style="bold"))
        if job.difference:
            self._print_line(Text.assemble(("differ: ", "bold red"), job.difference))
        if not job.irs:
            self._print_line(Text("neither has an IR", style=QUIET))
        for one in job.irs:
            self._print_comparison(one)

    def print_jobs(
        self,
        names: tuple[str, str],
        jobs: Sequence[JobComparison],
        groups: Sequence[ComparisonGroup],
        transitions: Sequence[Transition] = (),
    ) -> None:
        """Print regressions, changes and fixes, and how IRs differ, equal changes as a group.

        Args:
            names: Names of both sides.
            jobs: The pairs.
            groups: Differences of their IRs, grouped; empty if IRs are not requested.
            transitions: Change of each pair, in the order of `jobs`; empty if only IRs are
                requested.
        """
        self._print_line(Text(" -> ".join(names), style="bold"))
        if transitions:
            self._print_kinds(transitions)
        if any(job.irs for job in jobs):
            self._print_tally(jobs)
        self._names_cells = len({job.cells for job in jobs}) > 1
        pairs = list(zip(jobs, transitions, strict=False))
        for kind in COUNTED:
            of_kind = [
                (_describe_change(job, change), job) for job, change in pairs if change.kind is kind
            ]
            self._print_alike(of_kind, str(kind))
        within = [
            job for job, change in pairs if change.kind is TransitionKind.SAME and job.difference
        ]
        self._print_alike([(job.difference, job) for job in within], "differs within the tolerance")
        self._print_alike(
            [(reason, job) for job in jobs for reason in _find_problems(job)], "not compared"
        )
        # Groups that do the same work are most of a comparison of releases, and in the tally.
        listed = [g for g in groups if self._full or not g.example.neutral_equal]
        shown = listed if self._full else listed[:GROUPS]
        for number, group in enumerate(shown):
            self._print_group(group, brief=not self._full and number >= EXAMPLES)
        if len(listed) > len(shown):
            self._print_more(len(listed) - len(shown), "group")

    def print_unmatched(self, where: str, jobs: Sequence[str]) -> None:
        """Print the jobs that only one side has, if there are any.

        Args:
            where: Name of that side.
            jobs: Ids of the jobs.
        """
        if jobs:
            number = len(jobs)
            self._print_line(Text(f"\n{plural(number, 'job')} only in {where}:", style="bold"))
            self._print_members(jobs)

    def _print_kinds(self, transitions: Sequence[Transition]) -> None:
        found = Counter(change.kind for change in transitions)
        words = ", ".join(
            f"{found[kind]} {kind}" for kind in (*COUNTED, TransitionKind.SAME) if found[kind]
        )
        number = len(transitions)
        self._print_line(Text(f"{plural(number, 'job')}: {words}", style="bold"))

    def _print_tally(self, jobs: Sequence[JobComparison]) -> None:
        diffs = [one.diff for job in jobs for one in job.irs if one.diff is not None]
        counts = Counter(
            TALLY[0] if d.equal else TALLY[1] if d.neutral_equal else TALLY[2] for d in diffs
        )
        words = ", ".join(f"{counts[word]} {word}" for word in TALLY if counts[word])
        head = f"{plural(len(diffs), 'pair')} of IRs: {words or 'none to compare'}"
        self._print_line(Text(head, style="bold"))

    def _print_alike(self, found: Iterable[tuple[str, JobComparison]], title: str) -> None:
        by_words: dict[str, list[JobComparison]] = {}
        for text, job in found:
            by_words.setdefault(text, []).append(job)
        for text, members in sorted(by_words.items(), key=lambda item: -len(item[1])):
            head = f"\n{title} in {plural(len(members), 'job')}: "
            self._print_line(Text.assemble((head, "bold"), text))
            self._print_members([self._name_job(job) for job in members])

    def _print_group(self, group: ComparisonGroup, *, brief: bool) -> None:
        number = len(group.jobs)
        self._print_line(Text(f"\n{group.ir}, in {plural(number, 'job')}:", style="bold"))
        self._print_members([self._name_job(job) for job in group.jobs])
        # The jobs of a group have equal patterns, so one of them is shown.
        self._print_warnings(group.example)
        self._print_changes(group.example, brief=brief)

    def _name_job(self, job: JobComparison) -> str:
        return job.id if self._names_cells else job.case

    def _print_members(self, jobs: Sequence[str]) -> None:
        shown = jobs if self._full else jobs[:JOBS]
        for job in shown:
            self._print_line(Text(f"  {job}", style=QUIET))
        if len(jobs) > len(shown):
            self._print_more(len(jobs) - len(shown), "job")

    def _print_comparison(self, one: IrComparison) -> None:
        if one.diff is None:
            self._print_line(Text.assemble((f"\n{one.ir}", "bold"), (f"  {one.problem}", "yellow")))
        else:
            self._print_ir(one.ir, one.diff)

    def _print_ir(self, ir: str, diff: IrDiff) -> None:
        self._print_line(Text.assemble((f"\n{ir}", "bold"), "  ", summarize_difference(diff)))
        if not diff.neutral_equal:
            self._print_line(describe_alignment(diff))
        self._print_warnings(diff)
        self._print_changes(diff)
        if self._detail is not Detail.PATTERNS:
            self._print_facts(diff.facts)

    def _print_warnings(self, diff: IrDiff) -> None:
        """Print the reasons for which the patterns may mislead."""
        if diff.aligned_share < POOR:
            share = f"only {diff.aligned_share:.0%} of the instructions correspond"
            self._print_line(
                Text(f"  warning: {share}, the patterns below may mislead", "bold yellow")
            )
        if diff.not_understood:
            items = sorted(diff.not_understood.items(), key=lambda item: -item[1])
            shown = items if self._full else items[:UNKNOWN]
            words = ", ".join(f"{name} x{n}" if n > 1 else name for name, n in shown)
            more = f" and {len(items) - len(shown)} more" if len(items) > len(shown) else ""
            self._print_line(Text(f"  compared as text only: {words}{more}", style="yellow"))

    def _print_changes(self, diff: IrDiff, *, brief: bool = False) -> None:
        """Print the patterns: the first with their lines, then a line each, then how many more."""
        changes = self._level.select_changes(diff)
        whole = 0 if brief or self._detail is Detail.PATTERNS else EXAMPLES
        for number, change in enumerate(changes):
            if not self._full and self._detail is Detail.SHORT and number >= PATTERNS:
                self._print_more(len(changes) - number, "pattern")
                break
            if not self._full and number >= whole:
                if number == whole > 0:
                    self._print_line(Text())
                self._print_line(render_title(change))
                continue
            self._print_line(Text())
            self._print_line(render_title(change))
            if change.where:
                self._print_indented(Text(f"in {change.where}", style=QUIET))
            self._print_excerpts(change)

    def _print_excerpts(self, change: Change) -> None:
        """Print the lines of the worked example, those that correspond against each other."""
        # Lines without a counterpart are `None`: columns must keep them, a list omits them.
        rows = [
            (
                _make_excerpt(
                    "- ", BEFORE, _get_item(change.before, one), _get_item(change.after, other)
                ),
                _make_excerpt(
                    "+ ", AFTER, _get_item(change.after, other), _get_item(change.before, one)
                ),
            )
            for one, other in align_lines(change.before, change.after)
        ]
        columns = [list(filter(None, column)) for column in zip(*rows, strict=True)]
        wide = self._console.is_terminal and self._console.width >= WIDE
        # With lines on one side only, half of the terminal would be blank.
        if wide and rows and all(columns):
            self._print_columns(rows)
            return
        for lines in columns:
            shown = lines if self._full else lines[:LINES]
            for mark, line in shown:
                self._print_excerpt(mark, line)
            self._print_omitted(len(lines) - len(shown))

    def _print_columns(self, rows: Sequence[tuple[_Line | None, _Line | None]]) -> None:
        width = (self._console.width - 2 * INDENT) // 2
        table = Table.grid(padding=(0, INDENT, 0, 0))
        table.add_column(width=width, overflow="fold")
        table.add_column(width=width, overflow="fold")
        shown = rows if self._full else rows[:LINES]
        for row in shown:
            table.add_row(*(self._fit_cell(line, width) for line in row))
        # `soft_wrap` would disable the folding within a column.
        self._console.print(Padding(table, (0, 0, 0, INDENT), expand=False), soft_wrap=False)
        self._print_omitted(len(rows) - len(shown))

    def _fit_cell(self, line: _Line | None, width: int) -> Text:
        if line is None:
            return Text()
        mark, text = line
        return Text.assemble(mark, text.text if self._full else fit_line(text, width - len(mark)))

    def _print_excerpt(self, mark: Text, line: StyledLine) -> None:
        if self._full or not self._console.is_terminal:
            self._print_indented(Text.assemble(mark, line.text))
        else:
            width = self._console.width - INDENT - len(mark)
            self._print_indented(Text.assemble(mark, fit_line(line, width)))

    def _print_indented(self, text: Text) -> None:
        """Print an indented text; in a terminal, its folded lines are indented too."""
        # A pipe gets whole lines, so that `grep` finds an instruction.
        if self._console.is_terminal:
            self._console.print(Padding(text, (0, 0, 0, INDENT), expand=False), soft_wrap=False)
        else:
            self._print_line(Text.assemble(" " * INDENT, text))

    def _print_omitted(self, more: int) -> None:
        if more > 0:
            self._print_line(Text(f"{' ' * INDENT}... {more} more (--full)", style=QUIET))

    def _print_facts(self, facts: Mapping[str, Mapping[str, Any]]) -> None:
        """Print the facts that differ; without `--full`, only a few that gate."""
        rows = compare_facts(facts.get("a", {}), facts.get("b", {}))
        shown = rows if self._full else [row for row in rows if row.gates][:FACTS]
        if not rows:
            return
        more = len(rows) - len(shown)
        if shown:
            rest = f", {more} more with --full" if more else ""
            self._print_line(Text.assemble(("\n  facts that differ", "bold"), (rest, QUIET)))
        else:
            words = f"\n  no fact that gates differs; {plural(more, 'other')} with --full"
            self._print_line(Text(words, style=QUIET))
        margin = max((min(len(row.name), MARGIN) for row in shown), default=0)
        for row in shown:
            gates = ("gates  ", "bold red") if row.gates else ("       ", "")
            self._print_line(
                Text.assemble(
                    "    ", gates, f"{row.name:{margin}}  ",
                    (row.before, BEFORE), " -> ", (row.after, AFTER),
                )
            )  # fmt: skip

    def _print_more(self, number: int, what: str) -> None:
        self._print_line(Text(f"  ... {plural(number, f'more {what}')} (--full)", style=QUIET))

    def _print_line(self, text: Text) -> None:
        # rich would break lines at the width of the console, which is 80 in a pipe.
        self._console.print(text, soft_wrap=True)


def _describe_change(job: JobComparison, change: Transition) -> str:
    """Return a change in words: of the outcome or the value, else of the facts."""
    before, after = change.before.record, change.after.record
    # The judge compares with goldens and words its results so; here the other side is a job.
    facts = "; ".join(find_changed_facts(after.facts, before.facts)).replace("golden", "before")
    return job.difference or facts or f"{before.conformance} -> {after.conformance}"


def _find_problems(job: JobComparison) -> list[str]:
    """Return why IRs of two jobs were not compared, unless their outcomes explain it."""
    by_words: dict[str, list[str]] = {}
    for one in job.irs:
        if one.problem and not (job.difference and one.missing):
            by_words.setdefault(one.problem, []).append(one.ir)
    return [f"{', '.join(irs)}: {problem}" for problem, irs in by_words.items()]


def _make_excerpt(sign: str, colour: str, line: str | None, other: str | None) -> _Line | None:
    """Return a line with its sign, in colour where its counterpart differs; None for no line."""
    if line is None:
        return None
    return Text(sign, style=colour, end=""), style_line(line, other, colour)


def _get_item(items: Sequence[T], number: int | None) -> T | None:
    return None if number is None else items[number]
