"""Statements that can be tried: of the README, of the history, and of `docs/coverage.md`.

Each is about two neighbouring releases. One about a case holds where the case changes between them;
one with a script of `statements/` holds where the script prints the same on both, or differs where
`statements.toml` says so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import tomllib
from common import ROOT

from conformance.cells.releases import load_releases
from conformance.corpus.behaviour_changes import load_families
from conformance.corpus.case_selection import select_cases
from conformance.engine.golden_history import MAIN, choose_main_variant, find_golden_changes
from conformance.golden.store import GoldenStore
from conformance.report.behaviour_history import GATES, find_evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from conformance.engine.golden_history import GoldenChange

SCRIPTS = ROOT / "benchmarks" / "statements"
RELEASES = [*load_releases(ROOT / "matrix").versions]
BEFORE = {after: before for before, after in pairwise(RELEASES)}
CASES = {case.id: case for case in select_cases((), ROOT / "cases")}
BUGS = "Reported bugs"
UNRELEASED = "After 0.11.0"
"""Heading of the page for the release that its changelog does not know yet."""
STARTS = "from which the case starts"
"""Words of a row about a new name: without it there is nothing to run."""
NUMBER = r"\d+\.\d+\.\d+(?:\.\d+)?"
CASE = re.compile(r"\[`(\w+/\w+(?:\[[\w.]+\])?)`\]")
SCRIPT = re.compile(r"\[`(\w+\.py)`\]\(\.\./benchmarks/statements/\1\)")
LINK = re.compile(r"\[.*?\]\(.*?\)")
BORDER = re.compile(rf"(up to|before|from|since|on|in) ({NUMBER})( alone)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence about what changes, or does not, from one release to the next.

    Attributes:
        source: Where it is from.
        text: The sentence.
        last: The older release.
        first: The newer one.
        evidence: Changes of cases that show it, as goldens have them.
        starts: Cases that the older release has nothing to run for.
        script: Name of the script that shows it, empty for none.
        differs: Whether the script prints something else on the newer release.
    """

    source: str
    text: str
    last: str
    first: str
    evidence: tuple[GoldenChange, ...] = ()
    starts: tuple[str, ...] = ()
    script: str = ""
    differs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of `docs/coverage.md`.

    Attributes:
        heading: Its heading.
        what: What changed.
        why: What shows it, or why nothing does.
        threads: Upstream threads, for a reported bug.
    """

    heading: str
    what: str
    why: str
    threads: tuple[str, ...] = ()

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of the cases that it names; of a case that it names without parameters, all."""
        named = CASE.findall(self.why)
        return tuple(case for name in named for case in ids_of(name))

    @property
    def scripts(self) -> tuple[str, ...]:
        """Names of the scripts that it names."""
        return tuple(SCRIPT.findall(self.why))

    @property
    def releases(self) -> tuple[str, ...]:
        """Releases at which its cases may change: those that it names, or that of its heading."""
        if self.heading == BUGS:
            return tuple(RELEASES[1:])
        heading = "0.11.1" if self.heading == UNRELEASED else self.heading
        return tuple(re.findall(NUMBER, LINK.sub("", self.why))) or (heading,)


def ids_of(name: str) -> tuple[str, ...]:
    """Return the ids of a case, with its parameters or without."""
    return (name,) if name in CASES else tuple(one for one in CASES if one.startswith(f"{name}["))


@cache
def changes_of(case: str) -> tuple[GoldenChange, ...]:
    """Return what the goldens of a case say changed, on a CPU where they have one."""
    return tuple(find_golden_changes([CASES[case]]))


@cache
def is_for_cpu(case: str) -> bool:
    """Say whether the goldens of a case have a CPU."""
    document = GoldenStore(ROOT / "cases").load_document(CASES[case])
    return document is not None and choose_main_variant(document) == MAIN


@cache
def start_of(case: str) -> str:
    """Return the first release of which goldens of a case are recorded, empty for none."""
    document = GoldenStore(ROOT / "cases").load_document(CASES[case])
    spans = document.variants[choose_main_variant(document)]["ending"] if document else ()
    return spans[0].first if spans else ""


def changes_at(cases: Iterable[str], release: str) -> tuple[GoldenChange, ...]:
    """Return what changes at a release, without what gates nothing where something gates."""
    found = [one for case in cases for one in changes_of(case) if one.release == release]
    gating = [one for one in found if one.shown_by in GATES]
    return tuple(gating or found)


def coverage_rows() -> Iterator[Row]:
    """Yield the rows of the page, from top to bottom."""
    heading = ""
    for line in (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line.startswith("| ") and not line.startswith(("| ---", "| what ")):
            what, why, *threads = line.strip("| ").split(" | ")
            named = tuple(threads[0].split(", ")) if threads else ()
            yield Row(heading=heading, what=what, why=why, threads=named)


def of_readme() -> Iterator[Statement]:
    """Yield a statement for each release that a row of the README about a case names."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, said in re.findall(r"^\| `(\w+/[^`]+)` \| (.*) \|$", text, re.MULTILINE):
        firsts: dict[str, None] = {}
        for word, release, alone in BORDER.findall(said):
            after = RELEASES[RELEASES.index(release) + 1 :][:1]
            firsts |= dict.fromkeys(after if word == "up to" else [release])
            firsts |= dict.fromkeys(after if alone else [])
        for first in firsts:
            shown = changes_at(ids_of(name), first)
            yield Statement(
                source="README", text=said, last=BEFORE[first], first=first, evidence=shown
            )


def of_history() -> Iterator[Statement]:
    """Yield the declared changes of all families whose cases run on a CPU."""
    for family, said in load_families(ROOT / "cases").items():
        for change in said.change:
            cases = [*filter(is_for_cpu, change.cases)]
            first = change.shown_at
            if cases:
                yield Statement(
                    source=f"docs/history/{family}.md",
                    text=change.summary,
                    last=BEFORE[first],
                    first=first,
                    evidence=find_evidence(change, chain.from_iterable(map(changes_of, cases))),
                )


def of_coverage() -> Iterator[Statement]:
    """Yield the rows of the page with a case that runs on a CPU, and those with a script."""
    for row in coverage_rows():
        if cases := [*filter(is_for_cpu, row.cases)]:
            yield from of_row(row, cases)
    for one in tomllib.loads((SCRIPTS / "statements.toml").read_text(encoding="utf-8"))[
        "statement"
    ]:
        yield Statement(
            source="docs/coverage.md",
            text=f"{one['row']} {' '.join(one.get('threads', ()))}".strip(),
            last=one["last"],
            first=one["first"],
            script=one["script"],
            differs=one.get("differs", False),
        )


def of_row(row: Row, cases: list[str]) -> Iterator[Statement]:
    """Yield a statement for each release at which a row is shown; one that is not, if none is."""
    found = []
    for first in row.releases:
        shown = changes_at(cases, first)
        if row.heading == BUGS:  # a case of a bug may change its message at other times
            shown = tuple(one for one in shown if one.shown_by in {"outcome", "value"})
        starts = [case for case in cases if STARTS in row.why and start_of(case) == first]
        if shown or starts:
            found.append((first, shown, tuple(starts)))
    for first, shown, starts_there in found or [(row.releases[0], (), ())]:
        yield Statement(
            source="docs/coverage.md",
            text=f"{row.heading}: {row.what}",
            last=BEFORE[first],
            first=first,
            evidence=shown,
            starts=starts_there,
        )


def script_of(statement: Statement) -> Path:
    """Return the script of a statement."""
    return SCRIPTS / statement.script
