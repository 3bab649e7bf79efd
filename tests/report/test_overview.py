"""The story in ten seconds: what is unexpected first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.engine.runs.transitions import TransitionKind
from conformance.model.outcome import Conformance, Verdict
from conformance.report.overview import (
    ReleaseChange,
    ReleaseChangeGroup,
    collect_changes,
    make_overview,
)
from conformance.report.report import Report
from conformance.report.site.matrix_page import filter_address, list_entries
from tests.builders import f32
from tests.report.runs import ADD, CELLS, COPIED, MULTIPLY, Directory
from tests.report.site.examples import full_report
from tests.report.upgrades import Tried

if TYPE_CHECKING:
    from pathlib import Path


def test_an_overview_counts_unexpected_jobs(tmp_path: Path) -> None:
    """By verdict, the worst first; what says nothing of JAX apart."""
    story = make_overview(full_report(tmp_path))
    assert dict(story.unexpected) == {"crashed": 1, "regressed": 2}
    assert next(iter(story.unexpected)) == "crashed"
    assert (story.wrong, story.jobs, story.causes) == (3, 26, 2)
    assert (story.infra, story.not_run) == (1, 1)
    assert dict(story.changes) == {"regressed": 1, "fixed": 1}
    assert story.ended == "2026-05-01T10:01:30+00:00"


def test_releases_are_ordered_as_versions(tmp_path: Path) -> None:
    """0.10 is newer than 0.9, whatever the platform it ran on."""
    run = Directory(tmp_path)
    for cell in ("jax0.10.0-py311-tpu.v5e.2x2", "jax0.9.0-py311-cpu8", "jax0.11.0-py312-cpu8"):
        run.job("f/a", cell)
    assert make_overview(run.report()).releases == ("0.9.0", "0.10.0", "0.11.0")


def test_a_run_that_did_not_end_has_the_time_of_its_beginning(tmp_path: Path) -> None:
    """It is told from when it began."""
    report = Directory(tmp_path).job("f/a", "jax0.9.0-py311-cpu8").report(finished="")
    assert make_overview(report).ended == "2026-05-01T10:00:00+00:00"


def test_each_problem_is_one_line(tmp_path: Path) -> None:
    """However long, and whatever is in them."""
    runs = full_report(tmp_path).runs
    (told,) = make_overview(Report(runs, ("bad\n\x1b[31m" + "x" * 9000,))).problems
    assert len(told) < 500
    assert "\x1b" not in told


def test_search_entries_are_families_releases_cases_and_runs(tmp_path: Path) -> None:
    """Families, releases from the newest, cases with their first line, runs."""
    report = full_report(tmp_path)
    found = list(list_entries(report, make_overview(report)))
    kinds = list(dict.fromkeys(kind for kind, *_ in found))
    assert kinds == ["family", "release", "case", "run"]
    assert ("family", "loops", "2 cases", "index.html#family=loops") in found
    assert next(name for kind, name, *_ in found if kind == "release") == "jax 0.10.2"
    broken = ("case", "shapes/broken", "An axis that went away.", "cases/shapes/broken.html")
    assert broken in found
    assert found[-1][3] == "runs/night-1.html"


def test_filters_of_an_address_are_escaped() -> None:
    """A name with signs that stand for others in an address."""
    assert filter_address(family="a&b=c #d") == "index.html#family=a%26b%3Dc+%23d"


def test_first_seen_jobs_of_an_upgrade_are_not_unexpected(tmp_path: Path) -> None:
    """A value without golden and reference is what it compares; a wrong one stays unexpected."""
    new = {"verdict": Verdict.NEW, "conformance": Conformance.UNKNOWN}
    wrong = {"verdict": Verdict.NEW, "conformance": Conformance.DEVIATES}
    seen = ({"value": f32(1), **new},) * 3
    tried = Tried(tmp_path / "run").case("f/a", *seen, {"value": f32(2), **new})
    report = tried.report()
    assert (make_overview(report).wrong, report.causes) == (0, ())
    tried = Tried(tmp_path / "other").case("f/a", *seen, {"value": f32(2), **wrong})
    assert (make_overview(tried.report()).wrong, len(tried.report().causes)) == (1, 1)
    assert make_overview(Report(report.runs)).wrong == 4


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


def test_changes_are_sorted_by_severity_then_frequency(tmp_path: Path) -> None:
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
