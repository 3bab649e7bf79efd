"""What releases changed, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.transitions import TransitionKind
from conformance.report.changes import ReleaseChange, ReleaseChangeGroup, collect_changes
from tests.builders import f32
from tests.report.runs import ADD, CELLS, COPIED, MULTIPLY, Directory

if TYPE_CHECKING:
    from pathlib import Path

OLD, MIDDLE, NEW = CELLS
TPU = tuple(cell.replace("cpu8", "tpu.v5e.2x2") for cell in CELLS)


def test_the_same_change_on_several_tracks_is_one(tmp_path: Path) -> None:
    """Also where it is told of otherwise: facts follow from how a job ended."""
    made = Directory(tmp_path / "r")
    made.job("f/a", OLD, texts={"hlo": ADD}).job("f/a", MIDDLE, error=("TypeError", "no"))
    made.job("f/b", TPU[0]).job("f/b", TPU[1], error=("TypeError", "no"))
    change = ReleaseChange(
        kind=TransitionKind.REGRESSED,
        release="0.6.2",
        artifacts=("ending",),
        endings=("ok", "TypeError: no"),
    )
    assert collect_changes(made.report()) == [
        ReleaseChangeGroup(
            change=change, cases=("f/a", "f/b"), tracks=("cpu8", "tpu:v5e:2x2"), points=2
        )
    ]


def test_the_gravest_come_first_then_the_most_frequent(tmp_path: Path) -> None:
    """A change of an IR alone is none."""
    made = Directory(tmp_path / "r")
    made.job("f/a", OLD, error=("E", "no")).job("f/a", MIDDLE).job("f/a", NEW, error=("E", "no"))
    for case in ("f/b", "f/c"):
        made.job(case, OLD, f32(1)).job(case, MIDDLE, f32(2))
    made.job("f/d", OLD, error=("E", "no")).job("f/d", MIDDLE, error=("E", "another"))
    made.job("f/e", OLD, texts={"hlo": ADD}).job("f/e", MIDDLE, texts={"hlo": COPIED})
    found = [(g.change.kind, g.change.release, g.points) for g in collect_changes(made.report())]
    assert found == [
        (TransitionKind.REGRESSED, "0.8.3", 1),
        (TransitionKind.CHANGED, "0.6.2", 2),
        (TransitionKind.CHANGED, "0.6.2", 1),
        (TransitionKind.FIXED, "0.6.2", 1),
    ]
    assert collect_changes(made.report())[2].change.endings == ("E", "E")


def test_other_artifacts_are_other_changes(tmp_path: Path) -> None:
    """A value, and work that is done otherwise too."""
    made = Directory(tmp_path / "r").job("f/a", OLD, f32(1)).job("f/a", MIDDLE, f32(2))
    made.job("f/b", OLD, f32(1), texts={"hlo": ADD})
    made.job("f/b", MIDDLE, f32(2), texts={"hlo": MULTIPLY})
    found = [g.change.artifacts for g in collect_changes(made.report())]
    assert found == [("value",), ("value", "hlo")]
