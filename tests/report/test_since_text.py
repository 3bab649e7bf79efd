"""What changed since the previous run, in words."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console

from conformance.model.run_files import ArtifactChange, CauseSince, JobAt, PackageChange, Since
from conformance.report.markdown import render_markdown
from conformance.report.report import Report
from conformance.report.since_text import render_since
from conformance.report.terminal import print_report
from tests.builders import f32
from tests.report.runs import CELLS, Directory

if TYPE_CHECKING:
    from pathlib import Path

NASTY = "\x1b]0;title\x07 @somebody #1 `x` <b>"


def cause(case: str, reason: str = "out 1 against 2", nights: int = 1) -> CauseSince:
    """Return a root cause of one job."""
    job = JobAt(case=case, place="nightly-cpu8")
    return CauseSince(
        id=case, verdict="regressed", reason=reason, jobs=(job,), run="run-1",
        since="2026-05-01T03:00:00+00:00", nights=nights,
    )  # fmt: skip


def since(**kinds: object) -> Since:
    """Return what changed since the first of May."""
    return Since(run="run-1", started="2026-05-01T03:00:00+00:00", **kinds)  # type: ignore[arg-type]


def test_every_kind_of_change_is_listed() -> None:
    """What is new first, without an age; what is alike in many places once."""
    packages = [
        PackageChange(place=place, package="jax", before="1", after="2")
        for place in ("nightly-cpu8", "nightly-tpu.v5e.2x2")
    ]
    told = since(
        new=(cause("f/new"),), gone=(cause("f/gone"),), still=(cause("f/still", nights=3),),
        unseen=(cause("f/unseen"),), added=(JobAt(case="f/a", place="p"),) * 2,
        removed=(JobAt(case="f/b", place="p"),), packages=tuple(packages),
        silent=(JobAt(case="f/c", place="q"),),
        artifacts=(ArtifactChange(artifact="hlo", place="p", cases=("f/1", "f/2", "f/3", "f/4")),),
    )  # fmt: skip
    why = "on nightly-cpu8: out 1 against 2"
    causes = "1 new, 1 still there, 1 gone, 1 not seen"
    jobs = "4 jobs moved, 2 jobs added, 1 job removed, 1 job silent"
    assert list(render_since(told)) == [
        f"since run-1 of 2026-05-01: {causes}, {jobs}",
        f"  new: regressed f/new {why}",
        f"  gone: regressed f/gone {why} (since 2026-05-01, 1 night)",
        f"  not seen: regressed f/unseen {why} (since 2026-05-01, 1 night)",
        f"  still there: regressed f/still {why} (since 2026-05-01, 3 nights)",
        "  moved: hlo of f/1, f/2, f/3 and 1 more on p",
        "  added: 2 jobs on p",
        "  removed: 1 job on p",
        "  silent: 1 job on q",
        "  installed on nightly-cpu8, nightly-tpu.v5e.2x2: jax 1 -> 2",
    ]


def test_no_change_is_one_line() -> None:
    """Also where there is something that was there before; of much of that not all is told."""
    assert list(render_since(since())) == ["since run-1 of 2026-05-01: nothing changed"]
    many = since(still=tuple(cause(f"f/{number}") for number in range(30)))
    lines = list(render_since(many, most=2))
    assert lines[0].endswith(": nothing changed, 30 still there")
    assert lines[-1] == "  still there: 28 more"
    new = since(new=many.still)
    assert len(list(render_since(new, most=2))) == 31


def test_changes_come_first_in_the_terminal_and_markdown(tmp_path: Path) -> None:
    """Where it is looked for; nothing in it acts."""
    run = Directory(tmp_path / "r").job("f/a", CELLS[0], f32(1)).loaded()
    report = Report((run,), since=since(new=(cause("f/new", NASTY),)))
    text = render_markdown(report)
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert heads[0] == "## Since the last night: 1 new"
    assert "- **new** ``regressed f/new on nightly-cpu8: ␛]0;title␇ @somebody #1 `x` <b>``" in text
    out = io.StringIO()
    print_report(Console(file=out, width=80, highlight=False), report, directory=tmp_path)
    first, new, *_ = out.getvalue().splitlines()
    assert first == "since run-1 of 2026-05-01: 1 new"
    assert new.startswith("  new: regressed f/new on nightly-cpu8: ␛]0")
    assert "\x1b" not in out.getvalue()


def test_the_cases_of_a_root_cause_are_named() -> None:
    """The first of many."""
    jobs = tuple(JobAt(case=f"f/{number}", place="p") for number in range(5))
    one = msgspec.structs.replace(cause("f/0", "no"), jobs=jobs)
    *_, line = render_since(since(new=(one,)))
    assert line == "  new: regressed f/0, f/1, f/2 and 2 more on p: no"


def test_a_missing_earlier_run_is_one_line(tmp_path: Path) -> None:
    """In a terminal and in Markdown; nobody asked where there is no reason."""
    run = Directory(tmp_path / "r").job("f/a", CELLS[0], f32(1))
    report = run.report(not_compared="no earlier run of matrix smoke was found")
    out = io.StringIO()
    print_report(Console(file=out, width=80, highlight=False), report, directory=tmp_path)
    said = "ot compared with an earlier run: "
    first, *_ = out.getvalue().splitlines()
    assert first == f"n{said}no earlier run of matrix smoke was found"
    assert f"N{said}`no earlier run of matrix smoke was found`." in render_markdown(report)


def test_markdown_stays_within_its_bounds(tmp_path: Path) -> None:
    """However much changed; what is left out is counted."""
    run = Directory(tmp_path / "r").job("f/a", CELLS[0], f32(1)).loaded()
    new = tuple(cause(f"f/{number}", "x" * 5000) for number in range(2000))
    text = render_markdown(Report((run,), since=since(new=new)))
    assert len(text) < 60_000
    assert "more lines are left out here, which show" in text
