"""The story in ten seconds: what is unexpected first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.model.outcome import Conformance, Verdict
from conformance.report.report import Report
from conformance.report.site.search_data import filter_address, list_entries
from conformance.report.story import make_story
from tests.builders import f32
from tests.report.runs import Directory
from tests.report.site.examples import full_report
from tests.report.upgrades import Tried

if TYPE_CHECKING:
    from pathlib import Path


def test_story_counts_what_is_unexpected(tmp_path: Path) -> None:
    """By verdict, the worst first; what says nothing of JAX apart."""
    story = make_story(full_report(tmp_path))
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
    assert make_story(run.report()).releases == ("0.9.0", "0.10.0", "0.11.0")


def test_story_of_a_run_that_did_not_end(tmp_path: Path) -> None:
    """It is told from when it began."""
    report = Directory(tmp_path).job("f/a", "jax0.9.0-py311-cpu8").report(finished="")
    assert make_story(report).ended == "2026-05-01T10:00:00+00:00"


def test_problems_are_told_in_a_line_each(tmp_path: Path) -> None:
    """However long, and whatever is in them."""
    runs = full_report(tmp_path).runs
    (told,) = make_story(Report(runs, ("bad\n\x1b[31m" + "x" * 9000,))).problems
    assert len(told) < 500
    assert "\x1b" not in told


def test_what_is_searched_for(tmp_path: Path) -> None:
    """Families, releases from the newest, cases with their first line, runs."""
    report = full_report(tmp_path)
    found = list(list_entries(report, make_story(report)))
    kinds = list(dict.fromkeys(kind for kind, *_ in found))
    assert kinds == ["family", "release", "case", "run"]
    assert ("family", "loops", "2 cases", "index.html#family=loops") in found
    assert next(name for kind, name, *_ in found if kind == "release") == "jax 0.10.2"
    broken = ("case", "shapes/broken", "An axis that went away.", "cases/shapes/broken.html")
    assert broken in found
    assert found[-1][3] == "runs/night-1.html"


def test_a_choice_is_escaped() -> None:
    """A name with signs that stand for others in an address."""
    assert filter_address(family="a&b=c #d") == "index.html#family=a%26b%3Dc+%23d"


def test_what_an_upgrade_sees_first_is_not_unexpected(tmp_path: Path) -> None:
    """A value without golden and reference is what it compares; a wrong one stays unexpected."""
    new = {"verdict": Verdict.NEW, "conformance": Conformance.UNKNOWN}
    wrong = {"verdict": Verdict.NEW, "conformance": Conformance.DEVIATES}
    seen = ({"value": f32(1), **new},) * 3
    tried = Tried(tmp_path / "run").case("f/a", *seen, {"value": f32(2), **new})
    report = tried.report()
    assert (make_story(report).wrong, report.causes) == (0, ())
    tried = Tried(tmp_path / "other").case("f/a", *seen, {"value": f32(2), **wrong})
    assert (make_story(tried.report()).wrong, len(tried.report().causes)) == (1, 1)
    assert make_story(Report(report.runs)).wrong == 4
