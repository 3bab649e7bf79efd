"""Reads the statements of the README, the history and `docs/coverage.md` that can be checked.

Each is about two neighbouring releases. A statement about a case holds if the case changes between
them. A statement with a script of `statements/` holds if both outputs are equal, or differ where
`statements.toml` declares it.
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
from conformance.engine.runs.golden_history import MAIN, choose_main_variant, find_golden_changes
from conformance.golden.store import GoldenStore
from conformance.report.behaviour.history import GATES, find_evidence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from conformance.engine.runs.golden_history import GoldenChange
    from conformance.model.case import Case

SCRIPTS = ROOT / "benchmarks" / "statements"
RELEASES = [*load_releases(ROOT / "matrix").versions]
BEFORE = {after: before for before, after in pairwise(RELEASES)}
MODULES = "Cases by module"
"""Heading of the section whose rows are modules, not changes."""
BUGS = "Reported bugs"
UNRELEASED = "After 0.11.0"
"""Heading of the page for changes that the changelog of jax does not list yet."""
STARTS = "from which the case starts"
"""Words of a row about a new name: before it exists, its case cannot run."""
NUMBER = r"\d+\.\d+\.\d+(?:\.\d+)?"
CASE = re.compile(r"\[`(\w+/\w+(?:\[[\w.]+\])?)`\]")
SCRIPT = re.compile(r"\[`(\w+\.py)`\]\(\.\./benchmarks/statements/\1\)")
LINK = re.compile(r"\[.*?\]\(.*?\)")
BORDER = re.compile(rf"(up to|before|from|since|on|in) ({NUMBER})( alone)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence about what changes, or does not, from one release to the next.

    Attributes:
        source: Page with the statement.
        text: Sentence to print.
        last: Older release.
        first: Newer release.
        evidence: Changes in the goldens of cases that show it.
        starts: Cases that cannot run on the older release.
        script: Name of the script that shows it, empty for none.
        differs: Whether the outputs of the script are expected to differ.
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
        heading: Heading of its section.
        what: Description of the change.
        why: Cases or script that show it, or the reason why none does.
        threads: Upstream threads of a reported bug.
    """

    heading: str
    what: str
    why: str
    threads: tuple[str, ...] = ()

    @property
    def cases(self) -> tuple[str, ...]:
        """Ids of the cases in the row; for a parametrised case without parameters, all its ids."""
        named = CASE.findall(self.why)
        return tuple(case for name in named for case in expand_case(name))

    @property
    def scripts(self) -> tuple[str, ...]:
        """Names of the scripts in the row."""
        return tuple(SCRIPT.findall(self.why))

    @property
    def releases(self) -> tuple[str, ...]:
        """Releases at which its cases may change: those in the row, or that of its heading."""
        if self.heading == BUGS:
            return tuple(RELEASES[1:])
        heading = "0.11.1" if self.heading == UNRELEASED else self.heading
        return tuple(re.findall(NUMBER, LINK.sub("", self.why))) or (heading,)


@cache
def load_cases() -> dict[str, Case]:
    """Return all cases by id."""
    return {case.id: case for case in select_cases((), ROOT / "cases")}


def expand_case(name: str) -> tuple[str, ...]:
    """Return the ids of a case, with its parameters or without."""
    cases = load_cases()
    return (name,) if name in cases else tuple(one for one in cases if one.startswith(f"{name}["))


@cache
def load_changes(case: str) -> tuple[GoldenChange, ...]:
    """Return the changes in the goldens of a case, on a CPU if it has such goldens."""
    return tuple(find_golden_changes([load_cases()[case]]))


@cache
def is_for_cpu(case: str) -> bool:
    """Say whether a case has goldens for CPU."""
    document = GoldenStore(ROOT / "cases").load_document(load_cases()[case])
    return document is not None and choose_main_variant(document) == MAIN


@cache
def find_first_release(case: str) -> str:
    """Return the first release with goldens of a case, empty for none."""
    document = GoldenStore(ROOT / "cases").load_document(load_cases()[case])
    spans = document.variants[choose_main_variant(document)]["ending"] if document else ()
    return spans[0].first if spans else ""


def find_changes(cases: Iterable[str], release: str) -> tuple[GoldenChange, ...]:
    """Return the changes at a release; if one of them gates, only those that gate."""
    found = [one for case in cases for one in load_changes(case) if one.release == release]
    gating = [one for one in found if one.shown_by in GATES]
    return tuple(gating or found)


def read_coverage_rows() -> Iterator[Row]:
    """Yield the rows of `docs/coverage.md`, from top to bottom."""
    heading = ""
    for line in (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif heading == MODULES:
            continue
        elif line.startswith("| ") and not line.startswith(("| ---", "| what ")):
            what, why, *threads = line.strip("| ").split(" | ")
            named = tuple(threads[0].split(", ")) if threads else ()
            yield Row(heading=heading, what=what, why=why, threads=named)


def read_readme() -> Iterator[Statement]:
    """Yield a statement for each release in a README row about a case."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, summary in re.findall(r"^\| `(\w+/[^`]+)` \| (.*) \|$", text, re.MULTILINE):
        firsts: dict[str, None] = {}
        for word, release, alone in BORDER.findall(summary):
            after = RELEASES[RELEASES.index(release) + 1 :][:1]
            firsts |= dict.fromkeys(after if word == "up to" else [release])
            firsts |= dict.fromkeys(after if alone else [])
        for first in firsts:
            shown = find_changes(expand_case(name), first)
            yield Statement(
                source="README", text=summary, last=BEFORE[first], first=first, evidence=shown
            )


def read_history() -> Iterator[Statement]:
    """Yield the declared changes of all families whose cases run on a CPU."""
    for family, history in load_families(ROOT / "cases").items():
        for change in history.change:
            cases = [*filter(is_for_cpu, change.cases)]
            first = change.shown_at
            if cases:
                yield Statement(
                    source=f"docs/history/{family}.md",
                    text=change.summary,
                    last=BEFORE[first],
                    first=first,
                    evidence=find_evidence(change, chain.from_iterable(map(load_changes, cases))),
                )


def read_coverage() -> Iterator[Statement]:
    """Yield statements about rows with a case that runs on a CPU, and about scripts."""
    for row in read_coverage_rows():
        if cases := [*filter(is_for_cpu, row.cases)]:
            yield from split_row(row, cases)
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


def split_row(row: Row, cases: list[str]) -> Iterator[Statement]:
    """Yield a statement for each release that shows the row, or one without evidence."""
    found = []
    for first in row.releases:
        shown = find_changes(cases, first)
        if row.heading == BUGS:  # its message may change at other releases, too
            shown = tuple(one for one in shown if one.shown_by in {"outcome", "value"})
        starts = [case for case in cases if STARTS in row.why and find_first_release(case) == first]
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


def locate_script(statement: Statement) -> Path:
    """Return the script of a statement."""
    return SCRIPTS / statement.script
