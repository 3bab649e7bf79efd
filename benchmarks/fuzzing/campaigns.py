"""Figures of fuzzing campaigns, from their logs.

`python benchmarks/fuzzing/campaigns.py campaigns FOLDER...`: programs, valid ones a second, and
findings.

`python benchmarks/fuzzing/campaigns.py recall FOLDER...`: which changes of `recall.toml` findings
show: the operation changes its result at the release of the change.

`python benchmarks/fuzzing/campaigns.py judgements FILE...`: findings that were looked at by hand,
how many are real, by category.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from conformance.fuzz.campaign_log import CampaignLog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from conformance.fuzz.finding import Finding

RECALL = Path(__file__).with_name("recall.toml")


def main() -> None:
    """Print the figures."""
    command, *names = sys.argv[1:]
    commands = {"campaigns": print_campaigns, "recall": print_recall, "judgements": print_judged}
    commands[command]([Path(name) for name in names])


def print_campaigns(folders: Iterable[Path]) -> None:
    """Print a line for each campaign, and one for each kind of its findings."""
    for folder in folders:
        log = CampaignLog.load(folder)
        outcomes = Counter[str]()
        for done in log.rounds:
            outcomes.update(done.outcomes)
        seconds = sum(done.seconds for done in log.rounds)
        total = sum(done.total_seconds for done in log.rounds)
        tried = sum(outcomes.values()) - outcomes["unsupported"]
        cells = log.settings.cells
        print(
            f"{folder.name}: {cells[0]} to {cells[-1]}, seed {log.settings.seed}: "
            f"{sum(outcomes.values()):,} programs in {total / 60:.0f} min, "
            f"{outcomes['ok'] / max(1, tried):.1%} valid where they apply, "
            f"{outcomes['ok'] / max(1.0, seconds):.1f} a second while evaluating, "
            f"{len(log.findings)} findings, "
            f"{sum(not finding.known for finding in log.findings.values())} unknown"
        )
        kinds = Counter(f"{each.oracle}: {each.kind}" for each in log.findings.values())
        for kind, count in sorted(kinds.items()):
            print(f"    {count:4}  {kind}")


def print_recall(folders: Iterable[Path]) -> None:
    """Print for each change whether a finding shows it."""
    findings = [one for folder in folders for one in CampaignLog.load(folder).findings.values()]
    changes = msgspec.toml.decode(RECALL.read_text())["change"]
    found = 0
    for change in changes:
        shown = [each.id for each in findings if shows(each, change)]
        found += bool(shown)
        print(f"{'found' if shown else 'MISSED':7} {change['release']:8} {change['case']}  {shown}")
    print(f"{found} of {len(changes)}")


def shows(finding: Finding, change: dict[str, str]) -> bool:
    """Return whether a finding shows a change of values.

    Args:
        finding: A finding.
        change: A change of `recall.toml`.
    """
    return (
        finding.oracle == "release"
        and finding.kind in {"value", "nan", "dtype", "shape", "structure"}
        and change["release"] in finding.releases
        and bool({*change["operations"]} & {*finding.operations})
    )


def print_judged(files: Iterable[Path]) -> None:
    """Print how many findings are real, and of which category they are."""
    judged = [each for file in files for each in msgspec.toml.decode(file.read_text())["finding"]]
    found = [each for each in judged if each["ids"]]
    real = [each for each in found if each["real"]]
    print(
        f"{len(found)} roots of findings, {len(real)} real ({len(real) / max(1, len(found)):.0%})"
    )
    unknown = [each for each in real if not each.get("known")]
    print(f"{len(unknown)} of them no case knew")
    for category, count in Counter(each["category"] for each in unknown).most_common():
        print(f"    {count:4}  {category}")
    print(f"{sum(bool(each.get('case')) for each in found)} are cases now")
    print(f"{len(judged) - len(found)} more roots were found while looking at them")


if __name__ == "__main__":
    main()
