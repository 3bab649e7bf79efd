"""JUnit's XML, as readers take it."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from lxml import etree

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.loader import LoadedRun
from conformance.model.outcome import Conformance, Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record
from conformance.model.run import Exclusion, RunCell, RunInfo
from conformance.report.junit import render_junit
from conformance.report.report import Report
from tests.builders import f32
from tests.report.raising import LINES, RAISED
from tests.report.runs import CELLS, Directory

CELL, OTHER, _ = CELLS
SCHEMAS = ("Any-JUnit.xsd", "PyTest-JUnit.xsd")
ALLOWED = {
    "testsuites": {"name", "tests", "failures", "errors", "time"},
    "testsuite": {
        "name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname",
    },
    "testcase": {"name", "classname", "time"},
    "failure": {"type", "message"},
    "error": {"type", "message"},
    "skipped": {"type", "message"},
}  # fmt: skip
"""Attributes that the strictest of readers, Jenkins' xUnit, lets pass."""


def suites(report: Report) -> dict[str, TestSuite]:
    """Return the suites of a report by name, once they are proved valid."""
    text = render_junit(report)
    tree = etree.fromstring(text)
    for name in SCHEMAS:
        with files("pyEDAA.Reports.Resources").joinpath(name).open("rb") as file:
            etree.XMLSchema(etree.parse(file)).assertValid(tree)
    for tag, attributes in ALLOWED.items():
        assert {key for found in tree.iter(tag) for key in found.keys()} <= attributes  # noqa: SIM118 - lxml's elements iterate over children
    return {suite.name: suite for suite in JUnitXml.fromstring(text)}


def only(report: Report) -> TestCase:
    """Return the test of a report that has one."""
    (suite,) = suites(report).values()
    (case,) = suite
    assert isinstance(case, TestCase)
    return case


def ended(tmp_path: Path, verdict: Verdict, *reasons: str, **more: Any) -> Report:
    """Return a report of one job."""
    made = Directory(tmp_path / "r").job("f/a", CELL, verdict=verdict, reasons=reasons, **more)
    return made.report()


def test_a_suite_is_a_cell_and_a_test_a_job(tmp_path: Path) -> None:
    """With its time, and of the cell what it is made of."""
    made = Directory(tmp_path / "r").job("f/a", CELL, f32(1)).job("f/b[1]", CELL, f32(1))
    made.job("f/a", OTHER, f32(1), cached=True)
    found = suites(made.report(host={"system": "Linux"}, versions={"kit": "k1"}))
    assert list(found) == [CELL, OTHER]
    suite = found[CELL]
    assert [(t.classname, t.name, t.time) for t in suite] == [
        (f"{CELL}.f", "f/a", 1.0),
        (f"{CELL}.f", "f/b[1]", 1.0),
    ]
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (2, 0, 0, 0)
    assert (suite.time, suite.timestamp, suite.hostname) == (2, "2026-05-01T10:00:00", "localhost")
    told = {prop.name: prop.value for prop in suite.properties()}  # type: ignore[no-untyped-call]
    assert told == {
        "run": "r",
        "lock": "l" * 64,
        "host.system": "Linux",
        "harness.kit": "k1",
        "version.jax": "0.5.3",
        "version.numpy": "2.0.2",
    }
    assert found[OTHER].time == 0  # nothing ran


@pytest.mark.parametrize(
    ("verdict", "kind"),
    [
        (Verdict.MATCH, None),
        (Verdict.DRIFTED, None),
        (Verdict.NEW, None),
        (Verdict.REGRESSED, Failure),
        (Verdict.CHANGED, Failure),
        (Verdict.FIXED, Failure),
        (Verdict.STALE, Failure),
        (Verdict.FLAKY, Failure),
        (Verdict.CRASHED, Error),
        (Verdict.TIMED_OUT, Error),
        (Verdict.INFRA, Error),
        (Verdict.KNOWN, Skipped),
        (Verdict.EXCLUDED, Skipped),
    ],
)
def test_verdicts_become_failures_errors_and_skips(
    tmp_path: Path, verdict: Verdict, kind: type | None
) -> None:
    """Failures, errors, skipped; with the reasons, where the case is, and what repeats it."""
    test = only(ended(tmp_path, verdict, "out is 1, golden 2", "look there"))
    if kind is None:
        assert list(test.result) == []
        return
    (end,) = test.result
    assert isinstance(end, kind)
    assert (end.type, end.message) == (str(verdict), "out is 1, golden 2")
    said = ["out is 1, golden 2", "look there"]
    if kind is not Skipped:
        said += ["case at cases/f/t.py:3", f"repeat it with: conformance run f/a --cell {CELL}"]
    assert end.text.splitlines() == said


def test_a_new_job_without_a_reference_is_a_failure(tmp_path: Path) -> None:
    """Nothing vouches for it."""
    (end,) = only(ended(tmp_path, Verdict.NEW, conformance=Conformance.UNKNOWN)).result
    assert isinstance(end, Failure)
    assert (end.type, end.message) == ("new", "new")


def test_jobs_that_did_not_run_are_errors(tmp_path: Path) -> None:
    """An error where it should have; skipped where it was left out; runs that are broken."""
    left_out = (
        Exclusion(case="f/b", cell=CELL, reason="why"),
        Exclusion(case="", cell="gone", reason="no lock"),
    )
    made = Directory(tmp_path / "r").job("f/a", CELL, f32(1))
    run = made.loaded(exclusions=left_out, plan=(("f/a", CELL), ("f/c", CELL)))
    found = suites(Report((run,), ("r2/run.json: cannot be read",)))
    assert list(found) == [CELL, "gone", "runs"]
    _, killed, skipped = found[CELL]
    assert (killed.name, killed.result[0].type) == ("f/c", "not_run")
    assert killed.result[0].text.endswith(f"conformance run f/c --cell {CELL}")
    assert (skipped.name, skipped.result[0].text) == ("f/b", "why")
    assert (found[CELL].tests, found[CELL].errors, found[CELL].skipped) == (3, 1, 1)
    assert [(t.name, t.result[0].text) for t in found["gone"]] == [("every case", "no lock")]
    assert [(t.name, t.result[0].type) for t in found["runs"]] == [
        ("r2/run.json: cannot be read", "infra")
    ]


def test_only_the_first_job_of_a_root_cause_has_its_output(tmp_path: Path) -> None:
    """Its error and the end of what it printed; the others the reason alone."""
    error = ErrorInfo(type="TypeError", message="no\nnot at all", where="t.py:9")
    made = Directory(tmp_path / "r")
    for cell in (CELL, OTHER):
        made.job("f/a", cell, verdict=Verdict.REGRESSED, reasons=("raised",))
    texts = {"stdout": "out", "stderr": "x" * 100_000 + "\nFatal: \x1b[31mend"}
    stored = {name: made.run.blobs.put(text.encode()) for name, text in texts.items()}
    made.records = [replace(r, error=error, artifacts=stored) for r in made.records]
    (one,), (other,) = suites(made.report()).values()
    assert one.result[0].text.splitlines()[:4] == [
        "raised",
        "TypeError: no",
        "not at all",
        "raised at t.py:9",
    ]
    assert one.system_out == "out"
    assert one.system_err.startswith("... the last of 100,")
    assert one.system_err.endswith("Fatal: \u241b[31mend")
    assert len(one.system_err) < 10_000
    assert other.result[0].text.splitlines()[:2] == ["raised", "raised at t.py:9"]
    assert other.system_out is None


def test_a_lost_output_does_not_fail_the_report(tmp_path: Path) -> None:
    """Then that is what is told."""
    report = ended(tmp_path, Verdict.CRASHED, artifacts={"stderr": "0" * 32})
    assert "0" * 32 in only(report).system_err


HOSTILE = st.text(st.characters(codec=None), max_size=60)


@given(st.lists(HOSTILE, min_size=4, max_size=4))
def test_any_text_is_valid_xml(texts: list[str]) -> None:
    """Also nulls, lone surrogates, markup and the end of a CDATA section."""
    case, cell, reason, message = texts
    record = Record(
        case=f"f/{case}", cell=cell, case_hash="", cell_hash="", outcome=Outcome.RAISED,
        stage=Stage.TRACE, verdict=Verdict.REGRESSED, reasons=(reason, "]]>\x00\ud800<b>&\x85"),
        error=ErrorInfo(type=message, message=message, where=message),
    )  # fmt: skip
    info = RunInfo(cells=(RunCell(id=cell, versions={message: reason}),), started=reason)
    run = LoadedRun(id=message, info=info, records=(record,), blobs=BlobStore(Path()))
    (end,) = only(Report((run,))).result
    assert "]]>\u2400<U+D800><b>&<U+0085>" in end.text


def test_a_huge_message_is_cut(tmp_path: Path) -> None:
    """A report is read by people, and sent over networks."""
    huge = "y" * 10_000_000
    report = ended(tmp_path, Verdict.REGRESSED, huge, error=(huge, huge))
    assert len(render_junit(report)) < 20_000
    assert " more characters" in only(report).result[0].text


def test_the_traceback_of_the_first_job_of_a_root_cause(tmp_path: Path) -> None:
    """Within the failure: its own text is what every reader shows."""
    made = Directory(tmp_path / "r")
    for case in ("f/a", "f/b"):
        made.job(case, CELL, verdict=Verdict.REGRESSED, reasons=("raised E",), **RAISED)
    texts = [test.result[0].text or "" for test in suites(made.report())[CELL]]
    assert ["\n".join(LINES) in text for text in texts] == [True, False]
