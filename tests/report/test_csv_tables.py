"""Tables for spreadsheets."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest

from conformance.model.outcome import Conformance, Verdict
from conformance.model.run import Exclusion
from conformance.report.csv_tables import JOB, render_jobs_csv, render_matrix_csv
from tests.builders import f32
from tests.report.runs import CELLS, Directory

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.report.report import Report

OLD, NEW, _ = CELLS
TPU = "jax0.5.3-py311-tpu.v5e.2x2"


def read(text: str) -> list[list[str]]:
    """Return the rows of a table."""
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """A report in which cells are not in order, and some jobs are missing for some reason."""
    made = Directory(tmp_path / "r").job("f/b", TPU).job("f/a", NEW, f32(1))
    made.job("f/a", OLD, error=("TypeError", "no"), verdict=Verdict.KNOWN, reasons=("one", "two"))
    left_out = (
        Exclusion(case="f/b", cell=OLD, reason="why"),
        Exclusion(case="", cell="gone", reason="no lock"),
    )
    plan = (("f/b", TPU), ("f/a", NEW), ("f/a", OLD), ("f/b", NEW))
    return made.report(exclusions=left_out, plan=plan)


def test_the_matrix_has_cases_down_and_cells_across(report: Report) -> None:
    """Cells by track and release; what is missing says why."""
    assert read(render_matrix_csv(report)) == [
        ["case", OLD, NEW, TPU, "gone"],
        ["f/a", "known", "match", "", "excluded"],
        ["f/b", "excluded", "not_run", "match", "excluded"],
    ]


def test_a_row_for_each_job(report: Report) -> None:
    """Also for those that never ended, and that were left out."""
    heading, *rows = read(render_jobs_csv(report))
    assert tuple(heading) == JOB
    conforms = str(Conformance.CONFORMS)
    tpu = ["tpu:v5e:2x2", "0.5.3", "tpu"]
    assert rows == [
        ["f/b", TPU, *tpu, "ok", conforms, "match", "", "", "1.0"],
        ["f/a", NEW, "cpu8", "0.6.2", "cpu", "ok", conforms, "match", "", "", "1.0"],
        ["f/a", OLD, "cpu8", "0.5.3", "cpu", "raised", "deviates", "known", "one; two",
         "TypeError: no", "1.0"],
        ["f/b", NEW, "cpu8", "0.6.2", "cpu", "not_run", "", "", "", "", ""],
        ["f/b", OLD, "cpu8", "0.5.3", "cpu", "", "", "excluded", "why", "", ""],
        ["", "gone", "", "", "", "", "", "excluded", "no lock", "", ""],
    ]  # fmt: skip


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t=", "\n=", "\r+", " =", "\uff1d"])
def test_formulas_are_escaped(tmp_path: Path, sign: str) -> None:
    """Whatever begins a formula stands behind a quote."""
    evil = f'{sign}HYPERLINK("http://x","y")'
    made = Directory(tmp_path / "r").job(evil, OLD, verdict=Verdict.REGRESSED, reasons=(evil,))
    for text in (render_matrix_csv(made.report()), render_jobs_csv(made.report())):
        for row in read(text):
            for field in row:
                assert field[:1] not in {"=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"}


@pytest.mark.parametrize("text", ['a"b', "a,b;c\td", "a\nb", "a\x00\x1b[31mb", "\u202ex"])
def test_any_text_is_one_field(tmp_path: Path, text: str) -> None:
    """In one line, with nothing that acts."""
    made = Directory(tmp_path / "r").job("f/a", OLD, verdict=Verdict.REGRESSED, reasons=(text,))
    written = render_jobs_csv(made.report())
    (row,) = read(written)[1:]
    assert len(row) == len(JOB)
    assert len(written.splitlines()) == 2
    assert written.replace("\r\n", "").isprintable()


def test_a_huge_text_is_cut(tmp_path: Path) -> None:
    """A spreadsheet's cell is of a limited size."""
    made = Directory(tmp_path / "r").job("f/a", OLD, reasons=("y" * 10_000_000,))
    assert len(render_jobs_csv(made.report())) < 5_000
