"""The behaviour changes that families declare: each is caught by a case, where it is said to be."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import tomllib

from conformance.cells.releases import load_releases
from conformance.corpus.behaviour_changes import SOURCE_WORDS, Family, load_families
from conformance.engine.runs.golden_history import find_golden_changes
from conformance.report.behaviour.history import find_evidence

from .shipped import CASES, FAMILY_NAMES, load_shipped_cases

if TYPE_CHECKING:
    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.engine.runs.golden_history import GoldenChange


ROOT = Path(__file__).resolve().parents[1]
FAMILIES = load_families(CASES)
DECLARED = [change for family in FAMILIES.values() for change in family.change]
RELEASES = load_releases(ROOT / "matrix" / "releases.toml").versions
SOURCE = re.compile(rf"{'|'.join(SOURCE_WORDS)}|[\w.-]+/[\w.-]+(#\d+|@[0-9a-f]{{12}})")
COMMITS = tomllib.loads((ROOT / "benchmarks" / "cited_commits.toml").read_text())
CITED = "jax-ml/jax@"
every_family = pytest.mark.parametrize("family", FAMILY_NAMES)


@cache
def shown(case: str) -> tuple[GoldenChange, ...]:
    """Return what the goldens of a case say changed, on its main and on declared platforms."""
    return tuple(find_golden_changes([load_shipped_cases()[case]], DECLARED))


def list_changes(family: str) -> tuple[BehaviourChange, ...]:
    """Return the changes that a family declares."""
    return FAMILIES.get(family, Family()).change


@every_family
def test_a_change_is_shown_by_its_cases(family: str) -> None:
    """Each of its cases changes in the way it says, at the release that it says."""
    wrong = []
    for change in list_changes(family):
        for name in change.cases:
            if name not in load_shipped_cases():
                wrong.append(f"{family}/changes.toml: no case {name}")
            elif not find_evidence(change, shown(name)):
                places = sorted({(one.release, one.shown_by, one.platform) for one in shown(name)})
                wrong.append(f"{change.release}: {name} changes at {places}")
    assert wrong == []


@every_family
def test_every_change_of_outcome_is_named(family: str) -> None:
    """A line names each release at which a case starts or stops failing.

    Pairs have a page of their own, as each release adds some.
    """
    declared = FAMILIES.get(family, Family())
    lines = [change for change in declared.change if change.shown_by == "outcome"]
    named = {(case, change.shown_at) for change in lines for case in change.cases}
    changed = {
        (one.case.id, one.release)
        for case in load_shipped_cases().values()
        if case.family == family and case.name not in declared.pairs
        for one in shown(case.id)
        if one.shown_by == "outcome" and not one.platform
    }
    unnamed = sorted(changed - named)
    assert not unnamed, f"{family}/changes.toml: no line with shown_by = 'outcome' names {unnamed}"


@every_family
def test_a_change_is_a_sentence(family: str) -> None:
    """In a sentence, with a release that there is and where it comes from."""
    changes = list_changes(family)
    assert [c.summary for c in changes if not c.summary.endswith(".")] == []
    assert [c.source for c in changes if not SOURCE.fullmatch(c.source)] == []
    assert {r for c in changes for r in (c.release, c.shown_at)} <= set(RELEASES) - {"0.4.30"}


@every_family
def test_a_cited_commit_is_first_in_the_release(family: str) -> None:
    """As `benchmarks/cited_commits.py` found it by the tags of a clone of jax."""
    cited = [
        (c.release, c.source.removeprefix(CITED))
        for c in list_changes(family)
        if c.source.startswith(CITED)
    ]
    assert [pair for pair in cited if COMMITS[pair[1]] != pair[0]] == []


def test_no_commit_is_looked_up_in_vain() -> None:
    """The table holds the commits that the history cites, and no others."""
    sources = [change.source for said in FAMILIES.values() for change in said.change]
    assert set(COMMITS) == {s.removeprefix(CITED) for s in sources if s.startswith(CITED)}


def test_most_lines_say_which_names_they_are_about() -> None:
    """By which `conformance scan` finds the code that they touch."""
    assert sum(bool(change.touches) for change in DECLARED) >= 0.85 * len(DECLARED)
