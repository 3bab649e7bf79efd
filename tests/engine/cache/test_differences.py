"""The cache of IR differences."""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

import pytest

from conformance.engine.cache import differences
from conformance.engine.cache.differences import DiffCache, IrPair, make_ir_pair
from conformance.engine.process_pool import MANY
from tests.builders import f32
from tests.report.runs import ADD, CELLS, MULTIPLY, Directory, sides

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Directory:
    """A run of two jobs whose HLO differs."""
    run = Directory(tmp_path / "run").job("f/a", CELLS[0], f32(1), texts={"hlo": ADD})
    return run.job("f/a", CELLS[1], f32(1), texts={"hlo": MULTIPLY})


@pytest.fixture
def pair(made: Directory) -> IrPair:
    """The two texts."""
    one, other = sides(made)
    return make_ir_pair(one, other, "hlo")


def test_a_difference_is_computed_once(
    tmp_path: Path, pair: IrPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next report reads it, with its excerpts."""
    first = DiffCache(tmp_path / "cache").get(pair)
    monkeypatch.setattr("conformance.ir.text_diff.diff_texts", None)
    again = DiffCache(tmp_path / "cache").get(pair)
    assert again == first
    (change,) = first.changes
    assert (change.before, change.after) != ((), ())
    assert "multiply" in change.after[0]


def test_a_broken_entry_is_computed_again(tmp_path: Path, pair: IrPair) -> None:
    """A disk that was full once must not have a lasting effect."""
    first = DiffCache(tmp_path).get(pair)
    for file in (tmp_path / "diffs").rglob("*"):
        if file.is_file():
            file.write_bytes(b"\xc1")
    assert DiffCache(tmp_path).get(pair) == first


def test_entries_depend_on_the_code_that_compares(
    tmp_path: Path, pair: IrPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key contains the hash of that code."""
    key = pair.key
    monkeypatch.setattr(differences, "_hash_comparing_code", lambda: "other")
    assert pair.key != key


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("HloModule broken\n\nENTRY %main {", "not understood: "),
        (ADD + "// " + "x" * differences.LARGEST, "too large to be compared for a report"),
    ],
)
def test_the_reason_why_texts_are_not_compared(tmp_path: Path, text: str, problem: str) -> None:
    """It is shown in place of the difference."""
    run = Directory(tmp_path / "run").job("f/a", CELLS[0], texts={"hlo": ADD})
    one, other = sides(run.job("f/a", CELLS[1], texts={"hlo": text}))
    found = DiffCache(tmp_path / "cache").get(make_ir_pair(one, other, "hlo"))
    assert found.problem.startswith(problem)
    assert found.changes == ()


def test_a_missing_text_is_a_problem_of_the_difference(
    tmp_path: Path, made: Directory, pair: IrPair
) -> None:
    """The report continues."""
    for file in made.run.blobs.folder.iterdir():
        file.unlink()
    assert "cannot be read" in DiffCache(tmp_path / "cache").get(pair).problem


def many(folder: Path) -> list[IrPair]:
    """Return so many pairs that processes are worth starting."""
    run = Directory(folder / "run")
    for number in range(MANY + 1):
        run.job(f"f/{number}", CELLS[0], texts={"hlo": ADD.replace("f32[4]", f"f32[{number + 1}]")})
    first, *others = sides(run)
    return [make_ir_pair(first, other, "hlo") for other in others]


@pytest.mark.parametrize("order", [1, -1])
def test_several_processes_compute_the_same_differences(tmp_path: Path, order: int) -> None:
    """In any order of requests; each difference is cached."""
    pairs = many(tmp_path)
    one, several = DiffCache(tmp_path / "one"), DiffCache(tmp_path / "several", processes=2)
    with several.prepare([*pairs, *pairs]):
        found = [several.get(pair) for pair in pairs[::order]]
    assert found == [one.get(pair) for pair in pairs[::order]]
    kept = [file for file in (tmp_path / "several").rglob("*") if file.is_file()]
    assert len(kept) == len(pairs)


def test_abandoned_differences_are_not_computed(tmp_path: Path) -> None:
    """An interrupted report leaves no process; a later request computes the difference."""
    pairs = many(tmp_path)
    several = DiffCache(tmp_path / "several", processes=2)
    before = set(multiprocessing.active_children())  # e.g. of the cluster of other tests
    with pytest.raises(KeyboardInterrupt), several.prepare(pairs):
        raise KeyboardInterrupt
    assert set(multiprocessing.active_children()) <= before
    assert several.get(pairs[-1]).changes
