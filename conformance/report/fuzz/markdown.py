"""Campaigns of fuzzing as a Markdown page: campaigns, then findings by release. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.report.fuzz.issue import render_releases
from conformance.report.markup import fence, fold, to_code, to_table, wrap
from conformance.report.text import flatten
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.report.fuzz.summary import FoundDifference, FuzzSummary

HEAD: Final = (
    "Made by `conformance report --fuzz` from the campaigns of `conformance fuzz`: generated "
    "programs that gave another result on another release, in another mode, or in NumPy, beyond "
    "the rounding error. *New* findings are not in the history of behaviour changes; *fixed* ones "
    "failed on older releases and run on newer ones."
)
COLUMNS: Final = ("finding", "difference", "operations", "transforms", "programs", "status")
MOST: Final = 140
"""Characters of a difference in a table."""
MOST_PROGRAM: Final = 8_000
"""Characters of a program."""


def render_fuzz_markdown(summary: FuzzSummary, title: str = "Fuzzing") -> str:
    """Return a page of campaigns.

    Args:
        summary: The campaigns.
        title: Heading of the page.
    """
    return "\n\n".join(_render(summary, title)) + "\n"


def describe_counts(summary: FuzzSummary) -> str:
    """Return the number of programs and findings in a sentence.

    Args:
        summary: The campaigns.
    """
    counts = summary.counts
    return (
        f"{plural(len(summary.campaigns), 'campaign')}, {plural(summary.programs, 'program')}, "
        f"{plural(len(summary.differences), 'finding')}: {counts['new']} new, "
        f"{counts['fixed']} fixed since, {counts['known']} known."
    )


def format_duration(seconds: float) -> str:
    """Return a duration in minutes, or in hours and minutes: `1 h 5 min`."""
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _render(summary: FuzzSummary, title: str) -> Iterator[str]:
    yield f"# {title}"
    yield wrap(HEAD)
    yield describe_counts(summary)
    yield to_table([
        ["campaign", "releases", "seed", "programs", "valid", "time", "valid a second", "findings"],
        *(
            [
                row.name, f"{row.first} to {row.last} ({row.cells})", str(row.seed),
                f"{row.programs:,}", f"{row.valid:,}", format_duration(row.seconds),
                f"{row.rate:.1f}", str(row.findings),
            ]
            for row in summary.campaigns
        ),
    ])  # fmt: skip
    for release, found in summary.by_release:
        yield f"## {release}" if release else "## Differences within a release"
        yield to_table([[*COLUMNS], *map(_make_row, found)])
    if summary.differences:
        yield "## Programs"
        yield from map(_render_program, summary.differences)


def _make_row(one: FoundDifference) -> list[str]:
    finding = one.finding
    return [
        f"[{finding.id}](#{finding.id})",
        flatten(one.difference, MOST),
        to_code(", ".join(finding.operations)),
        ", ".join(finding.transforms),
        str(one.programs),
        finding.status,
    ]


def _render_program(one: FoundDifference) -> str:
    finding = one.finding
    parts = [fence(one.script, MOST_PROGRAM, "python")]
    if table := render_releases(finding):
        parts.append(table)
    also = f"; also {', '.join(one.others)}" if one.others else ""
    parts.append(f"Found in {', '.join(one.campaigns)}{also}.")
    summary = f"<code>{finding.id}</code> {', '.join(finding.operations)}"
    return f'<a id="{finding.id}"></a>\n\n' + fold(summary, "\n\n".join(parts))
