"""An upgrade's page: a summary to paste, changes by effect and root cause, cases not compared."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.report.site.addresses import run_page, upgrade_page
from conformance.report.site.rendering import render
from conformance.report.site.upgrade_groups import SHORT, list_anchors, make_groups
from conformance.report.upgrade.text import TITLES
from conformance.triage.upgrade.effect import BREAKING, Effect

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from conformance.report.report import Report
    from conformance.report.site.upgrade_groups import UpgradeGroupView
    from conformance.report.upgrade.file import UncomparedCase, UpgradeFile

TEMPLATE: Final = "upgrade.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectSection:
    """The cases with one effect.

    Attributes:
        effect: The effect.
        short: The effect in a word or two.
        title: The effect as a heading.
        count: Number of cases.
        groups: Changes, by release and root cause.
        names: Cases without any change, by platform; only for `UNCHANGED`.
    """

    effect: Effect
    short: str
    title: str
    count: int
    groups: tuple[UpgradeGroupView, ...]
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """Cases that were not compared in full, for one reason."""

    reason: str
    cases: tuple[str, ...]

    @property
    def number(self) -> int:
        """Number of cases."""
        return len(self.cases)


def render_upgrade_pages(report: Report) -> Iterator[tuple[str, bytes]]:
    """Yield the page of every upgrade.

    Args:
        report: The runs to report.

    Yields:
        Path below the site's root, and content.
    """
    pages = list_addresses(report)
    for run, page in pages.items():
        upgrade = report.upgrades[run]
        data = {
            "upgrade": upgrade,
            "breaks": any(upgrade.counts.get(effect) for effect in BREAKING),
            "sections": make_sections(report, run),
            "run": run_page(run),
            "ended": next(r.info.finished for r in report.runs if r.id == run),
            "others": [one for one in list_upgrades(report) if one[1] != page],
            "not_compared": group_by_reason(upgrade.not_compared),
            "fails_alike": group_by_reason(upgrade.fails_alike),
        }
        yield page, render(TEMPLATE, page, data)


def list_addresses(report: Report) -> dict[str, str]:
    """Return the page of each upgrade by its run's id, the newest first.

    Args:
        report: The runs to report.
    """
    # The newest has the address without a run id, which links can name in advance.
    ordered = report.upgrade_runs[::-1]
    return {run: upgrade_page(run, ordered[0]) for run in ordered}


def make_sections(report: Report, run: str) -> tuple[EffectSection, ...]:
    """Return the effects that an upgrade has, the gravest first.

    Args:
        report: The runs to report.
        run: Run id of the upgrade.
    """
    upgrade = report.upgrades[run]
    found: dict[Effect, list[UpgradeGroupView]] = defaultdict(list)
    for group in make_groups(report, run):
        found[group.effect].append(group)
    # Counted by case, because an unchanged case has no group.
    counts = Counter(one.kind for one in upgrade.cases)
    return tuple(
        EffectSection(
            effect=effect,
            short=SHORT[effect],
            title=TITLES[effect],
            count=counts[effect],
            groups=tuple(found[effect]),
            names=_list_unchanged(upgrade) if effect is Effect.UNCHANGED else (),
        )
        for effect in Effect
        if counts[effect]
    )


def _list_unchanged(upgrade: UpgradeFile) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the cases without any change on the way, by platform and name."""
    changed = {(one.case, one.platform) for one in upgrade.transitions}
    found: dict[str, list[str]] = {}
    for one in upgrade.cases:
        if (one.case, one.platform) not in changed:
            found.setdefault(one.platform, []).append(one.case)
    return tuple((platform, tuple(sorted(names))) for platform, names in found.items())


def group_by_reason(asides: Iterable[UncomparedCase]) -> tuple[ReasonGroup, ...]:
    """Return cases that were not compared in full by reason, the most frequent first.

    Args:
        asides: The cases.
    """
    # Keys instead of a list: a case on several platforms is named once.
    found: dict[str, dict[str, None]] = {}
    for one in asides:
        found.setdefault(one.reason, {})[one.case] = None
    made = [ReasonGroup(reason, tuple(cases)) for reason, cases in found.items()]
    return tuple(sorted(made, key=lambda why: -len(why.cases)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """The effect of an upgrade on a case.

    Attributes:
        ends: Both ends of the upgrade.
        platform: The platform.
        effect: The effect, in a word or two.
        release: The release that had it.
        page: Path of the upgrade's page.
        anchor: Anchor of the group on that page.
    """

    ends: tuple[str, str]
    platform: str
    effect: str
    release: str
    page: str
    anchor: str


def collect_mentions(report: Report) -> dict[str, list[Mention]]:
    """Return the effects of upgrades on each case that they change.

    Args:
        report: The runs to report.
    """
    found: dict[str, list[Mention]] = defaultdict(list)
    for run, page in list_addresses(report).items():
        upgrade = report.upgrades[run]
        for cause, anchor in zip(upgrade.groups, list_anchors(upgrade), strict=True):
            for change in map(upgrade.transitions.__getitem__, cause.transitions):
                mention = Mention(
                    ends=(upgrade.from_, upgrade.to),
                    platform=change.platform,
                    effect=SHORT[cause.kind],
                    release=change.changed_in,
                    page=page,
                    anchor=anchor,
                )
                found[change.case].append(mention)
    return dict(found)


def list_upgrades(report: Report) -> list[tuple[UpgradeFile, str]]:
    """Return each upgrade and its page, the newest first.

    Args:
        report: The runs to report.
    """
    return [(report.upgrades[run], page) for run, page in list_addresses(report).items()]
