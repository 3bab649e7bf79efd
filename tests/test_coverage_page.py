"""`docs/coverage.md`: each row holds, by goldens of the cases that it names or by a script."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import tomllib

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

from audit_sources import (  # noqa: E402 - benchmarks are no package
    BEFORE,
    BUGS,
    CASES,
    RELEASES,
    STARTS,
    Row,
    find_changes,
    find_first_release,
    read_coverage_rows,
    read_history,
    read_readme,
)

if TYPE_CHECKING:
    from audit_sources import Statement

    from conformance.engine.golden_history import GoldenChange

FOLDER = ROOT / "benchmarks" / "statements"
STATEMENTS: list[dict[str, Any]] = tomllib.loads((FOLDER / "statements.toml").read_text())[
    "statement"
]
ROWS = [*read_coverage_rows()]
UNCHANGED = re.compile(
    "nothing changes|the refusal is the same|the numbers are the same|a warning alone$"
    "|not seen on a CPU|NumPy's on all releases|allowed since before|without a visible effect"
)
"""Words of a row that says that a user sees no change."""
LINES = 60
OF_CASES = [row for row in ROWS if row.cases]
OF_NAMES = [row for row in OF_CASES if "names_that_are_not_there" in row.why]
every_statement = pytest.mark.parametrize(
    "one", STATEMENTS, ids=[f"{one['script']}-{one['first']}" for one in STATEMENTS]
)


@pytest.mark.parametrize("row", OF_CASES, ids=[f"{row.heading}-{row.what}" for row in OF_CASES])
def test_a_row_is_shown_by_its_cases(row: Row) -> None:
    """In its release, or in the one that it names: something changes, or the case starts there."""
    shown = [release for release in row.releases if find_changes(row.cases, release)]
    if STARTS in row.why:
        shown += [
            start for case in row.cases if (start := find_first_release(case)) in row.releases
        ]
    assert shown, f"no golden of {', '.join(row.cases)} changes in {', '.join(row.releases)}"


@pytest.mark.parametrize("row", OF_NAMES, ids=[f"{row.heading}-{row.what}" for row in OF_NAMES])
def test_a_name_of_a_row_comes_or_goes(row: Row) -> None:
    """The inventory of public names changes in what the row names, and not in something else."""
    named = {name.split(".")[-1].rstrip("*") for name in re.findall(r"`([\w.*]+)`", row.what)}
    changed = [
        path
        for release in row.releases
        for one in find_changes(row.cases, release)
        for path in differing(one)
    ]
    assert any(name in path for name in named for path in changed), sorted(changed)


def differing(change: GoldenChange) -> set[str]:
    """Return the paths of the leaves of a value that are others on the newer release."""
    assert change.endings
    before, after = (
        {leaf.path: leaf for leaf in content.value.leaves} if content.value else {}
        for content in change.endings
    )
    return {path for path in before | after if before.get(path) != after.get(path)}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.heading}-{row.what}" for row in ROWS])
def test_a_row_without_a_change_is_tried(row: Row) -> None:
    """A script shows it, and one for each thread; so it is for each script that the row names."""
    of_row = [one for one in STATEMENTS if one["row"] == row.what]
    assert set(row.scripts) <= {one["script"] for one in of_row}
    if UNCHANGED.search(row.why):
        alike = [one for one in of_row if not one.get("differs")]
        assert alike
        assert {thread for one in alike for thread in one.get("threads", ())} == set(row.threads)


@every_statement
def test_a_statement_is_of_a_row(one: dict[str, Any]) -> None:
    """The row has its threads, and names its script if that prints something else."""
    (row,) = (row for row in ROWS if row.what == one["row"])
    assert set(one.get("threads", ())) <= set(row.threads) or row.heading != BUGS
    assert not one.get("differs") or one["script"] in row.scripts
    assert BEFORE[one["first"]] == one["last"]


@every_statement
def test_a_script_is_short_and_says_what_it_shows(one: dict[str, Any]) -> None:
    """It uses jax, and nothing of ours."""
    text = (FOLDER / one["script"]).read_text(encoding="utf-8")
    assert text.startswith('"""')
    assert "import jax" in text or "from jax" in text
    assert "conformance" not in text
    assert len(text.splitlines()) <= LINES


def test_every_script_has_a_statement() -> None:
    """And each statement has a script."""
    scripts = {file.name for file in FOLDER.glob("*.py")}
    assert scripts == {one["script"] for one in STATEMENTS}


@pytest.mark.parametrize("one", [*read_readme()], ids=lambda one: f"{one.text[:40]}-{one.first}")
def test_a_release_of_the_readme_is_shown(one: Statement) -> None:
    """The case of the row changes in each release that the row names."""
    assert one.evidence, f"{one.text}: no golden changes in {one.first}"


def test_there_is_enough_to_draw_from() -> None:
    """The audit draws from the README and the history what can be tried."""
    assert len([*read_readme()]) >= 10
    assert len([*read_history()]) >= 500
    assert {one.first for one in read_history()} <= set(RELEASES)
    assert all(one.case.id in CASES for said in read_history() for one in said.evidence)
