"""The search for a commit, in histories that state how each commit behaves.

A history has a line for each environment, that of the older and that of the newer release; each
sign is a commit: `g` and `b` behave like the releases, `r` fails as `b` in other words, `o` in
another way, `x` cannot be imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from conformance.cells.cell import Cell
from conformance.cells.lock import Lock
from conformance.cells.repository import Repository
from conformance.cells.source_commit import SourceCommit
from conformance.cells.source_tree import SourcePackage
from conformance.engine.cache.blobs import BlobStore
from conformance.engine.job import PlannedCell
from conformance.engine.runs.stored_job import StoredJob
from conformance.judge.tolerance import Tolerance
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.search.endpoints import PredicateOptions, choose_predicate
from conformance.search.point_predicates import RepeatedPredicate
from conformance.search.predicates import Endpoints
from conformance.search.trials import CellTrials
from conformance.triage.commits.commit_cells import NEWER, OLDER, CommitBase, CommitCells
from conformance.triage.commits.commit_search import (
    MIXED,
    UNPROVEN,
    CommitFinding,
    CommitSearch,
    CommitVerdict,
)
from conformance.triage.commits.render import PackageCulprit, make_culprit_json, render_culprit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

ERRORS = {"b": "ValueError", "o": "TypeError", "r": "ValueError", "x": str(Outcome.UNSUPPORTED)}


@dataclass(kw_only=True)
class HistoryCells(CommitCells):
    """Commits that behave as a history states."""

    history: tuple[str, str]
    admitted: int | None = None

    def prepare_on(self, number: int, base: int) -> PlannedCell:
        """Return a cell whose hash is the sign of the commit."""
        sign = self.history[base][number]
        return PlannedCell(
            cell=Cell(release="0.6.0", python="3.11", devices=1 + number + 100 * base),
            versions={}, lock_hash="", cell_hash=sign,
            missing="no module named y" if sign == "x" else "",
        )  # fmt: skip

    def find_last_admitted(self) -> int:
        """Return the commit that the test states."""
        return len(self.commits) - 1 if self.admitted is None else self.admitted


class HistoryProber:
    """A target that ends as the sign of its cell states."""

    hash = "c"

    def __init__(self) -> None:
        self.probed: list[str] = []

    def get_versions(self, planned: PlannedCell) -> Mapping[str, str]:
        """Return the versions of all packages in a cell."""
        return planned.versions

    def probe(self, cells: Sequence[PlannedCell], *, again: bool = False) -> Iterator[Record]:
        """Yield a record for each cell; see `conformance.search.prober.Prober`."""
        for planned in cells:
            if not again:
                self.probed.append(planned.cell.id)
            yield make_record(planned.cell_hash, planned.cell.id)


def make_record(sign: str, cell: str = "") -> Record:
    """Return the record of a commit with a sign."""
    outcome = {"g": Outcome.OK, "x": Outcome.UNSUPPORTED}.get(sign, Outcome.RAISED)
    error = None
    if sign != "g":
        kind = ERRORS[sign]
        message = "requires jaxlib 2" if sign == "r" else "m"
        error = ErrorInfo(type=kind, message=message, signature=f"{kind}: {message}", where="")
    return Record(
        case="c", cell=cell, case_hash="c", cell_hash=sign, outcome=outcome, stage=Stage.EXECUTE,
        error=error,
    )  # fmt: skip


def make_bases() -> tuple[CommitBase, CommitBase]:
    """Return the environments of two releases that differ in jaxlib."""
    bases = []
    for version in ("1.0", "2.0"):
        planned = PlannedCell(
            cell=Cell(release="0.6.0", python="3.11"), versions={"jaxlib": version, "jax": "1"},
            lock_hash="", cell_hash="",
        )  # fmt: skip
        bases.append(CommitBase(planned=planned, lock=Lock(text="", path=None), label=version))  # type: ignore[arg-type]
    return bases[0], bases[1]


def make_commit(number: int, reverted: int | None) -> SourceCommit:
    """Return a commit, whose message names the commit that it reverts."""
    more = "" if reverted is None else f"\nReverts {reverted:012}"
    return SourceCommit(
        hash=f"{number:012}{0:028}", date="2025-01-01", title=f"commit {number}",
        message=f"#{number}{more}",
    )  # fmt: skip


def search(
    tmp_path: Path,
    older: str,
    newer: str,
    *,
    admitted: int | None = None,
    is_branched: bool = False,
    twins: frozenset[int] = frozenset(),
    reverted: Mapping[int, int] | None = None,
    releases: str = "gb",
) -> tuple[CommitFinding, list[str]]:
    """Search in a history; return the finding and the ids of the cells that were tried."""
    commits = [make_commit(n, (reverted or {}).get(n)) for n in range(len(older))]
    cells = HistoryCells(
        repository=Repository(folder=tmp_path, url="https://example.org/r"), commits=commits,
        package=SourcePackage(name="jax", module="jax"), bases=make_bases(), cache=tmp_path,
        locks={}, history=(older, newer), admitted=admitted,
    )  # fmt: skip
    blobs = BlobStore(tmp_path / "blobs")
    first, second = (StoredJob(make_record(sign), blobs) for sign in releases)
    good, bad = (first, second) if releases[0] == "g" else (second, first)
    ends = Endpoints(good=good, bad=bad, names=("1.0", "2.0"), tolerance=Tolerance())
    prober = HistoryProber()
    trials: CellTrials[int] = CellTrials(
        cell_of=cells.__getitem__, prepare=cells.prepare, prober=prober, blobs=blobs,
        keep=lambda _: None, tolerance=Tolerance(),
    )  # fmt: skip
    predicate = RepeatedPredicate(choose_predicate(ends, PredicateOptions()), 1)
    finding = CommitSearch(
        cells=cells, trials=trials, predicate=predicate, releases=([first], [second]),
        is_branched=is_branched, twins=twins,
    ).run()  # fmt: skip
    return finding, prober.probed


def list_candidates(finding: CommitFinding) -> list[str]:
    """Return the titles of the commits in question."""
    return [commit.title for commit in finding.candidates]


def test_commit_is_found_with_the_older_packages(tmp_path: Path) -> None:
    """Few of many commits are tried, and neither release again."""
    older = "g" * 300 + "b" * 200
    finding, probed = search(tmp_path, older, "b" * 500)
    assert list_candidates(finding) == ["commit 300"]
    assert finding.verdict is CommitVerdict.COMMIT
    assert finding.is_confirmed
    assert len(probed) <= 13


def test_sources_that_behave_alike_leave_the_environment(tmp_path: Path) -> None:
    """Two trials suffice: no commit is the culprit, but another package."""
    finding, probed = search(tmp_path, "g" * 9, "b" * 9)
    assert finding.verdict is CommitVerdict.ENVIRONMENT
    assert finding.candidates == []
    assert finding.is_confirmed
    assert len(probed) == 2


def test_commit_that_needs_the_newer_packages_is_an_interaction(tmp_path: Path) -> None:
    """Neither the commit nor the packages alone make the difference."""
    finding, _ = search(tmp_path, "g" * 9, "ggggbbbbb")
    assert finding.verdict is CommitVerdict.INTERACTION
    assert list_candidates(finding) == ["commit 4"]


def test_commit_after_the_last_that_the_older_packages_admit(tmp_path: Path) -> None:
    """It is tried with the newer packages alone."""
    finding, _ = search(tmp_path, "ggggggxxx", "xxggggggb", admitted=5)
    assert finding.verdict is CommitVerdict.COMMIT
    assert list_candidates(finding) == ["commit 8"]


def test_environment_is_not_proven_where_it_refuses_the_older_sources(tmp_path: Path) -> None:
    """A commit that acts only with the newer packages would show nothing with the older ones."""
    finding, _ = search(tmp_path, "ggggggxxx", "xxbbbbbbb", admitted=5)
    assert finding.verdict is CommitVerdict.ENVIRONMENT
    assert not finding.is_confirmed
    assert finding.remarks == (UNPROVEN,)
    # A failure in other words is one of sources that do not fit the newer packages.
    finding, _ = search(tmp_path, "bbbbbbbbb", "xrrrrgggg", releases="bg")
    assert (finding.verdict, finding.remarks) == (CommitVerdict.ENVIRONMENT, (UNPROVEN,))
    finding, _ = search(tmp_path, "ggggggxxx", "bxbbbbbbb", admitted=5)
    assert (finding.verdict, finding.remarks) == (CommitVerdict.ENVIRONMENT, ())


def test_commit_shows_with_the_newer_packages_as_far_as_they_go_back(tmp_path: Path) -> None:
    """The first sources cannot be tried with them, but later ones behave as these."""
    finding, _ = search(tmp_path, "ggggggggg", "xxxggbbbb")
    assert finding.verdict is CommitVerdict.INTERACTION
    assert list_candidates(finding) == ["commit 5"]
    assert not finding.is_confirmed  # it may be the first that fits them


def test_other_failure_with_the_older_packages_is_the_trace_of_a_commit(tmp_path: Path) -> None:
    """Such as `requires jaxlib >= 2.0`: what it brings shows with the newer packages only."""
    finding, _ = search(tmp_path, "bbbbrrrrr", "xxxxxxggg", releases="bg")
    assert finding.verdict is CommitVerdict.INTERACTION
    assert list_candidates(finding) == ["commit 4"]
    assert not finding.is_confirmed


def test_commit_that_requires_the_newer_packages_may_be_innocent(tmp_path: Path) -> None:
    """No environment runs both sides, so the answer says so and is not confirmed."""
    finding, _ = search(tmp_path, "ggggggxxx", "xxxxxxbbb", admitted=5)
    assert list_candidates(finding) == ["commit 6"]
    assert finding.remarks == (MIXED,)
    assert not finding.is_confirmed


@pytest.mark.parametrize(
    ("older", "expected"),
    [
        ("gggxxbbbb", ["commit 3", "commit 4", "commit 5"]),
        ("gxgxbbxxb", ["commit 3", "commit 4"]),
    ],
)
def test_untestable_commits_leave_a_set(tmp_path: Path, older: str, expected: list[str]) -> None:
    """They cannot be imported with the packages of either release."""
    finding, _ = search(tmp_path, older, "x" * len(older))
    assert list_candidates(finding) == expected
    assert not finding.is_confirmed


def test_change_that_was_reverted_and_made_again_is_noticed(tmp_path: Path) -> None:
    """The commit that the newer release has is the answer; the earlier ones are listed.

    Halving tries none of the commits at which the change was there for the first time.
    """
    older = "g" * 20 + "b" * 3 + "g" * 40 + "b" * 37
    reverted = {23: 20, 63: 23}
    plain, _ = search(tmp_path, older, "b" * 100)
    assert len(plain.changes) == 1
    finding, _ = search(tmp_path, older, "b" * 100, reverted=reverted)
    assert list_candidates(finding) == ["commit 63"]
    assert [change.after for change in finding.changes] == [20, 23, 63]


def test_other_failure_on_the_way_is_a_change_of_its_own(tmp_path: Path) -> None:
    """The page lists it."""
    finding, _ = search(tmp_path, "ggggooooobbb", "b" * 12)
    assert list_candidates(finding) == ["commit 9"]
    lines = [*render_culprit(PackageCulprit("jax", finding, "https://example.org/r"))]
    assert "also changes at 000000000004 2025-01-01, to other: commit 4" in lines


def test_fix_on_the_branch_of_the_older_release_is_no_culprit(tmp_path: Path) -> None:
    """The main line has the same fix under another hash, and broke later.

    Commit 0 is the release on its branch; 1 to 3 are the main line before the fix arrives.
    """
    finding, _ = search(tmp_path, "gbbbggggggbbb", "b" * 13, is_branched=True, twins=frozenset({4}))
    assert list_candidates(finding) == ["commit 10"]


def test_older_packages_that_break_later_sources_are_stepped_around(tmp_path: Path) -> None:
    """From there on the newer packages are tried, if both agree where both can be imported."""
    finding, _ = search(tmp_path, "ggggggxxxx", "gggggggbbb")
    assert list_candidates(finding) == ["commit 7"]
    finding, _ = search(tmp_path, "ggggggxxxx", "bbbbbbbbbb")
    assert finding.verdict is CommitVerdict.ENVIRONMENT


def test_answer_in_words_and_json(tmp_path: Path) -> None:
    """With a link, the references of its message, and the effort."""
    finding, _ = search(tmp_path, "ggggbb", "bbbbbb")
    culprit = PackageCulprit("jax", finding, "https://example.org/r", files=("jax/a.py",))
    lines = [*render_culprit(culprit)]
    assert lines[:3] == [
        "commit: 000000000004 2025-01-01 commit 4",
        "  #4 https://example.org/r/commit/000000000004",
        "  changes jax/a.py",
    ]
    assert lines[-2] == "confirmed: both sides gave the same result again"
    data = make_culprit_json(culprit)
    assert data["verdict"] == "commit"
    assert data["commits"][0]["references"] == ["#4"]
    assert data["steps"][0]["packages_of"] == "1.0"
    assert (OLDER, NEWER) == (0, 1)
