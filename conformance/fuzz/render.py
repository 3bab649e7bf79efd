"""A campaign as Markdown: what was tried, and each finding with its script. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from conformance.fuzz.comparison import Kind
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.fuzz.campaign_log import CampaignLog
    from conformance.fuzz.finding import Finding

SEVERITY = {str(kind): number for number, kind in enumerate(Kind)}

COLUMNS = (
    "finding", "releases", "oracle", "difference", "operations", "transforms", "programs", "status",
)  # fmt: skip


def render_markdown(log: CampaignLog) -> str:
    """Return a campaign as Markdown.

    Args:
        log: Log of the campaign.
    """
    return "\n".join(_render(log)) + "\n"


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, new ones before known ones, the most severe first."""
    return sorted(
        findings, key=lambda each: (bool(each.known), SEVERITY[each.kind], each.operations)
    )


def _render(log: CampaignLog) -> Iterator[str]:
    outcomes = Counter[str]()
    for done in log.rounds:
        outcomes.update(done.outcomes)
    seconds = sum(done.seconds for done in log.rounds)
    cells = log.settings.cells
    findings = sort_findings(log.findings.values())
    new = [each for each in findings if not each.known]
    yield f"# Campaign {log.settings.seed}: {cells[0]} to {cells[-1]}"
    yield ""
    if seconds:
        yield (
            f"{plural(sum(outcomes.values()), 'program')}, {outcomes['ok']:,} valid on the newest "
            f"release, {outcomes['ok'] / seconds:.1f} a second. "
            f"{plural(len(findings), 'finding')}, {len(new)} new."
        )
        yield ""
    if findings:
        yield f"| {' | '.join(COLUMNS)} |"
        yield "|---" * len(COLUMNS) + "|"
        yield from map(_render_row, findings)
    for finding in findings:
        yield ""
        yield f"## {finding.id}"
        yield ""
        yield f"{finding.kind}: {_escape(finding.detail)}"
        if finding.example:
            yield ""
            yield f"`{_escape(finding.example)[:300]}`"
        yield ""
        yield "```python"
        yield finding.script.rstrip()
        yield "print(jax.jit(function)(*args))"
        yield "```"


def _render_row(finding: Finding) -> str:
    cells = (
        f"[{finding.id}](#{finding.id})",
        ", ".join(finding.releases),
        finding.oracle,
        f"{finding.kind}: {_escape(finding.detail)[:80]}",
        ", ".join(finding.operations),
        ", ".join(finding.transforms),
        str(len(finding.programs)),
        f"known: {finding.known}" if finding.known else "new",
    )
    return "| " + " | ".join(cells) + " |"


def _escape(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
