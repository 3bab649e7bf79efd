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
    RELEASES,
    STARTS,
    Row,
    find_changes,
    find_first_release,
    load_cases,
    read_coverage_rows,
    read_history,
    read_readme,
)
from changelog_names import find_changes as find_signature_changes  # noqa: E402
from module_coverage import ROW, count_cases  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.engine.runs.golden_history import GoldenChange


FOLDER = ROOT / "benchmarks" / "statements"
PAGE = ROOT / "docs" / "coverage.md"
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
every_section = pytest.mark.parametrize("heading", dict.fromkeys(row.heading for row in ROWS))


def list_rows(heading: str) -> Iterator[Row]:
    """Yield the rows of a section."""
    return (row for row in ROWS if row.heading == heading)


@every_section
def test_a_row_is_shown_by_its_cases(heading: str) -> None:
    """In its release, or in the one that it names: something changes, or the case starts there."""
    of_cases = (row for row in list_rows(heading) if row.cases)
    assert [row.what for row in of_cases if not list_releases(row)] == []


def list_releases(row: Row) -> list[str]:
    """Return the releases in which the cases of a row show it."""
    shown = [release for release in row.releases if find_changes(row.cases, release)]
    if STARTS in row.why:
        starts = map(find_first_release, row.cases)
        shown += [start for start in starts if start in row.releases]
    return shown


@every_section
def test_a_name_of_a_row_comes_or_goes(heading: str) -> None:
    """The inventory of public names changes in what the row names, and not in something else."""
    for row in list_rows(heading):
        if "names_that_are_not_there" not in row.why or not row.cases:
            continue
        named = {name.split(".")[-1].rstrip("*") for name in re.findall(r"`([\w.*]+)`", row.what)}
        changed = [
            path
            for release in row.releases
            for one in find_changes(row.cases, release)
            for path in differing(one)
        ]
        missing = (row.what, sorted(changed))
        assert any(name in path for name in named for path in changed), missing


def differing(change: GoldenChange) -> set[str]:
    """Return the paths of the leaves of a value that are others on the newer release."""
    assert change.endings
    before, after = (
        {leaf.path: leaf for leaf in content.value.leaves} if content.value else {}
        for content in change.endings
    )
    return {path for path in before | after if before.get(path) != after.get(path)}


@every_section
def test_a_row_without_a_change_is_tried(heading: str) -> None:
    """A script shows it, and one for each thread; so it is for each script that the row names."""
    for row in list_rows(heading):
        of_row = [one for one in STATEMENTS if one["row"] == row.what]
        assert set(row.scripts) <= {one["script"] for one in of_row}, row.what
        if UNCHANGED.search(row.why):
            alike = [one for one in of_row if not one.get("differs")]
            assert alike, row.what
            threads = {thread for one in alike for thread in one.get("threads", ())}
            assert threads == set(row.threads), row.what


def test_a_statement_is_of_a_row() -> None:
    """The row has its threads, and names its script if that prints something else."""
    for one in STATEMENTS:
        (row,) = (row for row in ROWS if row.what == one["row"])
        assert set(one.get("threads", ())) <= set(row.threads) or row.heading != BUGS, one
        assert not one.get("differs") or one["script"] in row.scripts, one
        assert BEFORE[one["first"]] == one["last"], one


def test_a_script_is_short_and_says_what_it_shows() -> None:
    """It uses jax, and nothing of ours."""
    for file in sorted(FOLDER.glob("*.py")):
        text = file.read_text(encoding="utf-8")
        assert text.startswith('"""'), file
        assert "import jax" in text or "from jax" in text, file
        assert "conformance" not in text, file
        assert len(text.splitlines()) <= LINES, file


def test_every_script_has_a_statement() -> None:
    """And each statement has a script."""
    scripts = {file.name for file in FOLDER.glob("*.py")}
    assert scripts == {one["script"] for one in STATEMENTS}


def test_a_release_of_the_readme_is_shown() -> None:
    """The case of the row changes in each release that the row names."""
    unshown = [(one.text, one.first) for one in read_readme() if not one.evidence]
    assert unshown == [], "no golden changes in these releases"


def test_there_is_enough_to_draw_from() -> None:
    """The audit draws from the README and the history what can be tried."""
    assert len([*read_readme()]) >= 10
    assert len([*read_history()]) >= 500
    assert {one.first for one in read_history()} <= set(RELEASES)
    assert all(one.case.id in load_cases() for said in read_history() for one in said.evidence)


def test_each_module_has_the_number_of_its_cases() -> None:
    """After a change of the corpus, `python benchmarks/module_coverage.py --write` counts again."""
    listed = {name: int(count.replace(",", "")) for name, count in ROW.findall(PAGE.read_text())}
    assert len(listed) > 100
    assert listed == count_cases(listed)


def test_names_of_the_changelog_change_when_the_page_says() -> None:
    """The signature of each name changes in the release of its row, not in the changelog's."""
    section = PAGE.read_text().partition("## Names of the changelog")[2]
    rows = re.findall(r"^\| ([\d.]+) \| `([\w.]+)` \| ([\d.]+) \|$", section, re.MULTILINE)
    changes = find_signature_changes()
    assert len(rows) > 10
    assert [row for row in rows if row[2] not in changes[row[1]]] == []
    assert [row for row in rows if row[0] in changes[row[1]]] == []
