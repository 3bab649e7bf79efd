"""The history of JAX's behaviour as Markdown: a page a family, and one of all releases."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.golden.spans import version
from conformance.model.behaviour_change import WORDS
from conformance.report.behaviour_words import before_and_since
from conformance.report.markup import code, details, paragraph, table
from conformance.report.threads import address_of
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from conformance.engine.golden_history import GoldenChange
    from conformance.model.case import Case
    from conformance.report.behaviour import DeclaredChange, FamilyHistory, ReleaseChanges

SHOWN: Final = 3
"""Cases of one change whose before and since are told."""
FUNCTIONS: Final = 6
"""Functions that are named of those that changed in the same way."""
HEAD: Final = (
    "Made by `conformance report --goldens` from the goldens, each release with the dependencies "
    "of its day, on CPU; each line can be looked at with `conformance diff CASE --cell BEFORE "
    "--cell RELEASE`. Would it hit you? `conformance upgrade OLD NEW your_script.py` tells."
)


def render_behaviour_pages(
    histories: Sequence[FamilyHistory], dates: Mapping[str, str], root: Path
) -> Iterator[tuple[str, str]]:
    """Yield the pages, each with its file name; links are relative to a folder two below the root.

    Args:
        histories: What changed, by family.
        dates: Day of each release.
        root: Folder of the project.
    """
    writer = _Writer(dates=dates, root=root)
    yield "README.md", writer.index(histories)
    for history in histories:
        yield f"{history.name}.md", writer.page(history)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Writer:
    """Writes pages.

    Attributes:
        dates: Day of each release.
        root: Folder of the project.
    """

    dates: Mapping[str, str]
    root: Path

    def index(self, histories: Sequence[FamilyHistory]) -> str:
        """Return the page of all families: declared changes by release."""
        told = [(history.name, one) for history in histories for one in history.told]
        count = f"{plural(len(told), 'change')} of behaviour, by release. {HEAD}"
        parts = ["# What JAX changed", paragraph(count), "## Families", _render_families(histories)]
        for release in _newest_first(one.change.shown_at for _, one in told):
            heading = self._render_heading(release)
            lines = [
                f"- {one.change.told} ([{name}]({name}.md#{_anchor(heading)}))"
                for name, one in told
                if one.change.shown_at == release
            ]
            parts += [heading, "\n".join(lines)]
        return "\n\n".join(parts) + "\n"

    def page(self, history: FamilyHistory) -> str:
        """Return the page of one family."""
        about = f"{history.about} " if history.about else ""
        pairs = f" · [every pair]({history.name}_pairs.md)" if history.has_pairs else ""
        parts = [
            f"# {history.name}",
            paragraph(f"{about}{plural(len(history.cases), 'case')}. {HEAD}"),
            f"[All families](README.md) · [the cases](../../cases/{history.name}){pairs}",
        ]
        for release in history.releases:
            parts += self._release(release)
        return "\n\n".join(parts) + "\n"

    def _release(self, changed: ReleaseChanges) -> Iterator[str]:
        yield self._render_heading(changed.release)
        if changed.told:
            yield "\n".join(self._render_declared(told) for told in changed.told)
        if changed.also:
            lines = "\n".join(self._render_others(changed.also))
            count = len({one.case.id for one in changed.also})
            cases = plural(count, "case")
            what = "also other" if changed.told else "other"
            yield details(f"{cases} {what} than before", lines)

    def _render_declared(self, told: DeclaredChange) -> str:
        change, shown = told.change, told.evidence[:SHOWN]
        source = address_of(change.source)
        named = f"[{change.source}]({source})" if source else WORDS[change.source]
        lines = [f"- **{change.told}** {named}"]
        lines += [
            f"  - {self._link_case(one.case)}: {self._render_golden_change(one)}" for one in shown
        ]
        more = [self._link_case(one.case) for one in told.evidence[SHOWN:]]
        lines += [f"  - the same in {', '.join(more)}"] if more else []
        lines += [f"  - instead: {change.instead}"] if change.instead else []
        if change.seen:
            lines.append(f"  - upstream says {change.release}: {change.why}")
        return "\n".join(lines)

    def _render_others(self, turned: Iterable[GoldenChange]) -> Iterator[str]:
        """Yield a line for each way in which cases changed, with all cases that did so."""
        alike: dict[str, list[Case]] = {}
        for one in turned:
            alike.setdefault(self._render_golden_change(one), []).append(one.case)
        for said, cases in alike.items():
            yield f"- {self._functions(cases)}: {said}"

    def _functions(self, cases: Iterable[Case]) -> str:
        """Return the functions of cases, each with its parameters; of many only the first."""
        params: dict[str, list[str]] = {}
        for case in cases:
            link = self._link_case(case, case.name)
            params.setdefault(link, []).append(case.id.partition("[")[2].removesuffix("]"))
        told = [
            f"{link} ({', '.join(map(code, names))})" if all(names) else link
            for link, names in params.items()
        ]
        more = f" and {len(told) - FUNCTIONS} more" if len(told) > FUNCTIONS else ""
        return f"{', '.join(told[:FUNCTIONS])}{more}"

    def _link_case(self, case: Case, name: str = "") -> str:
        inside = case.file.is_relative_to(self.root)
        file = f"../../{case.file.relative_to(self.root).as_posix()}" if inside else str(case.file)
        return f"[{code(name or case.id.partition('/')[2])}]({file})"

    def _render_golden_change(self, one: GoldenChange) -> str:
        """Return what changed, and between which releases where some are not recorded."""
        start, end = version(one.last), version(one.release)
        between = any(start < version(release) < end for release in self.dates)
        since = f" (nothing is recorded between {one.last} and {one.release})" if between else ""
        return f"{before_and_since(one)}{since}"

    def _render_heading(self, release: str) -> str:
        date = self.dates.get(release)
        return f"## {release} ({date})" if date else f"## {release}"


def _render_families(histories: Iterable[FamilyHistory]) -> str:
    rows = [["family", "what it watches", "cases", "changes"]]
    rows += [
        [f"[{one.name}]({one.name}.md)", one.about, str(len(one.cases)), str(len(one.told))]
        for one in histories
    ]
    return table(rows)


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub makes of a heading: words and hyphens."""
    return re.sub(r"[^\w -]", "", heading.removeprefix("## ")).replace(" ", "-")


def _newest_first(releases: Iterable[str]) -> list[str]:
    return sorted(set(releases), key=version, reverse=True)
