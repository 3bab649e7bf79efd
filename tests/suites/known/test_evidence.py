"""Runs of a suite as evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.runs.loader import LoadedRun
from conformance.errors import UsageError
from conformance.model.outcome import Outcome, Stage, Verdict
from conformance.model.record import ErrorInfo, Record
from conformance.model.run import RunCell, RunInfo, RunSuite
from conformance.suites.known.evidence import extract_evidence

if TYPE_CHECKING:
    from pathlib import Path

CELL = "jax0.5.3-py311-cpu8"
SUITE = RunSuite(
    name="mine", revision="abc", complete=True, settings={"max_examples": 5, "standard": "claimed"}
)
INFO = RunInfo(
    exit=1, suite=SUITE, identities={CELL: {"facts": {"standard": "2024.12"}}},
    cells=(RunCell(id=CELL, versions={"jax": "0.5.3", "jaxlib": "0.5.3"}),),
)  # fmt: skip


def record(name: str, outcome: Outcome = Outcome.OK, **more: Any) -> Record:
    """Return the record of a test."""
    error = None if outcome is Outcome.OK else ErrorInfo(type="ValueError", message="no")
    return Record(
        case=f"mine/{name}", cell=more.pop("cell", CELL), case_hash="", cell_hash="",
        outcome=outcome, stage=Stage.EXECUTE, error=error, **more,
    )  # fmt: skip


def run_of(tmp_path: Path, *records: Record, info: RunInfo = INFO) -> LoadedRun:
    """Return a run of some records, all of them planned."""
    planned = replace(info, plan=tuple((one.case, one.cell) for one in records))
    return LoadedRun(id="1", info=planned, records=records, blobs=BlobStore(tmp_path))


def test_failures_of_a_run_are_extracted(tmp_path: Path) -> None:
    """Passed, skipped and expected failures are none."""
    run = run_of(
        tmp_path,
        record("t.py::a"),
        record("t.py::b", Outcome.RAISED, verdict=Verdict.REGRESSED),
        record("t.py::c", Outcome.CRASHED, verdict=Verdict.KNOWN),
        record("t.py::d", Outcome.UNSUPPORTED),
        record("t.py::e", Outcome.RAISED, artifacts={"xfail": "1"}, verdict=Verdict.KNOWN),
        record("t.py::f", Outcome.RAISED, verdict=Verdict.FLAKY),
    )
    shown = extract_evidence(run, "mine", "abc")
    (one,) = shown.evidence
    assert (one.release, one.platform, one.standard) == ("0.5.3", "cpu", "2024.12")
    failures = {name: failure.outcome for name, failure in one.failures.items()}
    assert failures == {"t.py::b": Outcome.RAISED, "t.py::c": Outcome.CRASHED}
    assert one.unknown == {"t.py::f"}
    assert shown.refused == (f"{CELL}: t.py::f is flaky, so its failure is not a known one",)
    assert (shown.generated.revision, shown.generated.examples) == ("abc", 5)


@pytest.mark.parametrize(
    ("cell", "records", "why"),
    [
        (
            RunCell(id="jax0.8.3.dev20251120-py311-cpu8", versions={"jax": "0.8.3.dev20251120"}),
            [record("a")],
            "jax 0.8.3.dev20251120 is no release: failures of development builds are not kept",
        ),
        (
            RunCell(id=CELL, versions={"jax": "0.5.3", "jaxlib": "0.5.3+mine"}),
            [record("a")],
            "jaxlib 0.5.3+mine is no release: failures of development builds are not kept",
        ),
        (
            RunCell(id=f"{CELL}-latest", versions={"jax": "0.5.3"}),
            [record("a")],
            "has other packages or settings than its release; its failures are its own",
        ),
        (RunCell(id=CELL), [record("a")], "its jax release is unknown"),
        (INFO.cells[0], [record("a", Outcome.UNSUPPORTED)], "no test was run"),
        (
            INFO.cells[0],
            [record("a"), record("b", Outcome.INFRA), record("c", Outcome.NOT_RUN)],
            "2 tests did not finish; run it again",
        ),
    ],
)
def test_unsuitable_cells_are_refused(
    tmp_path: Path, cell: RunCell, records: list[Record], why: str
) -> None:
    """With the reason."""
    own = [replace(one, cell=cell.id) for one in records]
    run = run_of(tmp_path, *own, info=replace(INFO, cells=(cell,)))
    shown = extract_evidence(run, "mine", "abc")
    assert shown.evidence == ()
    assert shown.refused == (f"{cell.id}: {why}",)


def test_incomplete_cell_is_refused(tmp_path: Path) -> None:
    """A planned test without a record is unknown."""
    run = run_of(tmp_path, record("a"), record("b"))
    shown = extract_evidence(replace(run, records=run.records[:1]), "mine", "abc")
    assert shown.refused == (f"{CELL}: 1 test did not finish; run it again",)


@pytest.mark.parametrize(
    ("info", "why"),
    [
        (replace(INFO, suite=None), "is of cases, expected a run of mine"),
        (replace(INFO, suite=replace(SUITE, name="tests")), "is of tests, expected a run of mine"),
        (
            replace(INFO, exit=None),
            "did not finish; only a whole run can be accepted",
        ),
        (
            replace(INFO, suite=replace(SUITE, revision="abc-changed")),
            "is of revision abc-changed, expected abc, which is pinned",
        ),
        (
            replace(INFO, suite=replace(SUITE, complete=False)),
            "is of some tests only; only a whole run can be accepted",
        ),
        (
            replace(INFO, suite=replace(SUITE, settings={"shrink": True})),
            "made examples smaller, so that errors may not be the usual ones; run without",
        ),
        (
            replace(INFO, suite=replace(SUITE, settings={"standard": "2022.12"})),
            "is held against 2022.12 of the standard, expected the version each release claims",
        ),
    ],
)
def test_unsuitable_runs_are_rejected(tmp_path: Path, info: RunInfo, why: str) -> None:
    """With the reason."""
    with pytest.raises(UsageError, match=f"^run 1 {why}$"):
        extract_evidence(run_of(tmp_path, record("a"), info=info), "mine", "abc")
