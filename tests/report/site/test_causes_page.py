"""The page of root causes: what is unexpected, grouped; and what says nothing about JAX."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformance.engine.runs.root_causes import find_root_causes
from conformance.model.outcome import Outcome, Verdict
from conformance.model.run_files import Culprit, Evidence
from conformance.report.report import CauseEvidence
from conformance.report.site.addresses import CAUSES
from conformance.report.site.causes_page import (
    collect_causes,
    collect_causes_by_case,
    render_causes_pages,
)
from tests.builders import f32
from tests.report.raising import RAISED
from tests.report.runs import CELLS, Directory
from tests.report.site.pages import Page

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.report.report import Report

REGRESSED: dict[str, Any] = {"verdict": Verdict.REGRESSED}


def page(report: Report) -> Page:
    """Return the page."""
    return Page(dict(render_causes_pages(report))[CAUSES])


def test_the_largest_cause_comes_first(tmp_path: Path) -> None:
    """Jobs that are unexpected for the same reason are one cause, with one example."""
    made = Directory(tmp_path)
    made.job("f/b", CELLS[0], f32(1), reasons=("alone",), **REGRESSED)
    for cell in CELLS:
        made.job("f/a", cell, error=("TypeError", "no such thing"), reasons=("many",), **REGRESSED)
    report = made.report()
    causes, _ = collect_causes(report)
    assert [(cause.reason, cause.jobs) for cause in causes] == [("many", 3), ("alone", 1)]
    found = page(report)
    assert "2 root causes of what is unexpected in 4 jobs" in found.text
    assert found.text.index("many") < found.text.index("alone")
    assert "no such thing" in found.text
    assert f"conformance run f/a --cell {CELLS[0]}" in found.text
    assert "cases/f/a.html" in found.links


def test_host_faults_are_counted_separately(tmp_path: Path) -> None:
    """Infrastructure, and what was planned and never ended."""
    made = Directory(tmp_path).job(
        "f/a", CELLS[0], outcome=Outcome.INFRA, verdict=Verdict.INFRA, reasons=("no network",)
    )
    report = made.report(plan=(("f/a", CELLS[0]), ("f/a", CELLS[1])), finished="", exit=None)
    causes, indeterminate = collect_causes(report)
    assert (causes, [cause.reason for cause in indeterminate]) == ([], ["no network"])
    found = page(report)
    assert "1 job ended for reasons of the host, 1 did not run" in found.text
    assert "Nothing is unexpected." in found.text
    assert f"f/a on {CELLS[1]}" in found.text


def test_a_run_as_expected_says_so(tmp_path: Path) -> None:
    """And nothing else."""
    found = page(Directory(tmp_path).job("f/a", CELLS[0], f32(1)).report())
    assert "0 root causes of what is unexpected in 1 job;" in found.text
    assert "indeterminate" not in found.ids


def test_a_cause_of_very_many_jobs_is_cut(tmp_path: Path) -> None:
    """The first cases are named, the others counted."""
    made = Directory(tmp_path)
    for number in range(40):
        made.job(f"f/{number}", CELLS[0], outcome=Outcome.INFRA, verdict=Verdict.INFRA,
                 reasons=("the disk is full",))  # fmt: skip
    found = page(made.report())
    assert "10 more cases." in found.text
    assert found.unclosed == []


def test_evidence_is_shown_with_its_cause(tmp_path: Path) -> None:
    """Since when, by what, what could not be found out; the file that shows it lies beside."""
    made = Directory(tmp_path)
    made.job("f/a", CELLS[1], error=("TypeError", "no <such> thing"), **REGRESSED)
    report = made.report()
    (cause,) = find_root_causes(report.records)
    found = Evidence(
        cause=cause.id, case="f/a", cell=CELLS[1], good="0.5.3", last_good="0.6.0",
        first_bad="0.6.1", confirmed=True, predicate="ends with TypeError", repro="repro/x.py",
        culprits=(Culprit(package="jaxlib", before="0.6.0", after="0.6.1"),),
        unresolved=("no <network>",),
    )  # fmt: skip
    evidence = {cause.id: CauseEvidence(found, "raise TypeError\n")}
    known = replace(report, evidence=evidence)
    (opening,) = collect_causes_by_case(known)["f/a"]
    assert opening.anchor == "cause-1"
    assert opening.evidence is evidence[cause.id]
    files = dict(render_causes_pages(known))
    shown = Page(files[CAUSES])
    assert "confirmed: it ends with TypeError" in shown.text
    assert "jaxlib 0.6.0 -> 0.6.1" in shown.text
    assert "no <network>" in shown.text
    assert f"repro/{cause.id}.py" in shown.links
    assert files[f"repro/{cause.id}.py"] == b"raise TypeError\n"
    assert CAUSES in files
    assert set(dict(render_causes_pages(report))) == {CAUSES}


def test_a_cause_has_a_traceback(tmp_path: Path) -> None:
    """Of its first job: the user's frames are seen, those of libraries unfolded at will."""
    made = Directory(tmp_path).job("f/a", CELLS[0], reasons=("raised E",), **REGRESSED, **RAISED)
    report = made.report()
    found = page(report)
    for words in ("Traceback of f/a on", "cases/f/t.py:7", "cases/f/t.py:9", "caused by KeyError"):
        assert words in found.text
    text = dict(render_causes_pages(report))[CAUSES].decode()
    assert "<details><summary>2 frames in jax and numpy</summary>" in text
    assert text.count('<li class="own">') == 3
