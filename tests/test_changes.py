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
from conformance.corpus.case_selection import select_cases
from conformance.engine.golden_history import find_golden_changes
from conformance.report.behaviour_history import find_evidence

if TYPE_CHECKING:
    from conformance.corpus.behaviour_changes import BehaviourChange
    from conformance.engine.golden_history import GoldenChange

ROOT = Path(__file__).resolve().parents[1]
CASES = {case.id: case for case in select_cases((), ROOT / "cases")}
FAMILIES = load_families(ROOT / "cases")
CHANGES = [(family, change) for family, said in FAMILIES.items() for change in said.change]
RELEASES = load_releases(ROOT / "matrix" / "releases.toml").versions
SOURCE = re.compile(rf"{'|'.join(SOURCE_WORDS)}|[\w.-]+/[\w.-]+(#\d+|@[0-9a-f]{{12}})")
COMMITS = tomllib.loads((ROOT / "benchmarks" / "cited_commits.toml").read_text())
every_change = pytest.mark.parametrize(
    ("family", "change"),
    CHANGES,
    ids=[f"{family}-{c.release}-{c.cases[0]}" for family, c in CHANGES],
)


@cache
def shown(case: str) -> tuple[GoldenChange, ...]:
    """Return what the goldens of a case say changed."""
    return tuple(find_golden_changes([CASES[case]]))


@every_change
def test_a_change_is_shown_by_its_cases(family: str, change: BehaviourChange) -> None:
    """Each of its cases changes in the way it says, at the release that it says."""
    for name in change.cases:
        assert name in CASES, f"{family}/changes.toml: no case {name}"
        places = {(one.release, one.shown_by) for one in shown(name)}
        assert find_evidence(change, shown(name)), f"{name} changes at {sorted(places)}"


@pytest.mark.parametrize("family", sorted({case.family for case in CASES.values()}))
def test_every_change_of_outcome_is_named(family: str) -> None:
    """A line names each release at which a case starts or stops failing.

    Pairs have a page of their own, as each release adds some.
    """
    declared = FAMILIES.get(family, Family())
    lines = [change for change in declared.change if change.shown_by == "outcome"]
    named = {(case, change.shown_at) for change in lines for case in change.cases}
    changed = {
        (one.case.id, one.release)
        for case in CASES.values()
        if case.family == family and case.name not in declared.pairs
        for one in shown(case.id)
        if one.shown_by == "outcome"
    }
    unnamed = sorted(changed - named)
    assert not unnamed, f"{family}/changes.toml: no line with shown_by = 'outcome' names {unnamed}"


@every_change
def test_a_change_is_a_sentence(family: str, change: BehaviourChange) -> None:
    """In a sentence, with a release that there is and where it comes from."""
    assert change.summary.endswith(".")
    assert SOURCE.fullmatch(change.source), family
    assert {change.release, change.shown_at} <= set(RELEASES) - {"0.4.30"}


@every_change
def test_a_cited_commit_is_first_in_the_release(family: str, change: BehaviourChange) -> None:
    """As `benchmarks/cited_commits.py` found it by the tags of a clone of jax."""
    repository, at, commit = change.source.partition("@")
    if at and repository == "jax-ml/jax":
        assert COMMITS[commit] == change.release, family


def test_no_commit_is_looked_up_in_vain() -> None:
    """The table holds the commits that the history cites, and no others."""
    assert set(COMMITS) == {c.source[11:] for _, c in CHANGES if c.source.startswith("jax-ml/jax@")}
