"""A report in Markdown."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt

from conformance.engine.runs.root_causes import find_root_causes
from conformance.model.outcome import Outcome, Verdict
from conformance.model.record import ErrorInfo, IrRecord, IrStatus
from conformance.model.run import Exclusion
from conformance.model.run_files import Culprit, Evidence
from conformance.model.traceback import RaisedException, encode_traceback
from conformance.report.markdown import render_markdown
from conformance.report.report import CauseEvidence, Report
from conformance.report.text import flatten
from tests.builders import f32
from tests.report.raising import own
from tests.report.runs import CELLS, Directory
from tests.report.test_markup import spans

if TYPE_CHECKING:
    from pathlib import Path

OLD, MIDDLE, NEW = CELLS
SILENT = "Says nothing about JAX: 0 ended for reasons of the host, 0 never ended."
READER = MarkdownIt("commonmark").enable("table")
HOSTILE = (
    "</summary></details><script>alert(1)</script> @everyone jax-ml/jax#1 #2 `tick` ``` | \\| "
    "[a](javascript:b) ![c](d) **bold** http://x.y\n# head\n- item\n\x00\x1b[31m\u202e\x85"
)


def headings(text: str) -> list[str]:
    """Return the headings of a text."""
    tokens = READER.parse(text)
    return [b.content for a, b in pairwise(tokens) if a.type == "heading_open"]


def table(text: str) -> list[list[str]]:
    """Return the cells of the table of a text."""
    rows: list[list[str]] = []
    for before, token in pairwise(READER.parse(text)):
        if token.type == "tr_open":
            rows.append([])
        if before.type in {"th_open", "td_open"}:
            rows[-1].append(token.content)
    return rows


def job(made: Directory, cell: str, verdict: Verdict, *reasons: str, **more: Any) -> Directory:
    """Add a job of `f/a` to a run."""
    return made.job("f/a", cell, verdict=verdict, reasons=reasons, **more)


def test_the_title_reports_nothing_unexpected(tmp_path: Path) -> None:
    """Then what was run."""
    made = Directory(tmp_path / "r").job("f/a", OLD, f32(1)).job("f/b", OLD, f32(1))
    text = render_markdown(made.report())
    assert text.splitlines()[:5] == [
        "# Conformance: nothing unexpected",
        "",
        f"2 jobs of 2 cases on 1 release: 2 match. {SILENT}",
        "",
        "Run `r` of `2026-05-01T10:01:30+00:00`.",
    ]
    assert headings(text)[1:] == ["Families by release"]


def test_root_causes_come_first_the_largest_first(tmp_path: Path) -> None:
    """Each with its reasons, its place, and what repeats it."""
    made = Directory(tmp_path / "r")
    job(made, OLD, Verdict.CHANGED, "another end")
    job(made, MIDDLE, Verdict.REGRESSED, "out is 1, golden 2", "look there")
    job(made, NEW, Verdict.REGRESSED, "out is 1, golden 2")
    where = ErrorInfo(type="E", message="m", where="f.py:3")
    made.records[1:] = [replace(record, error=where) for record in made.records[1:]]
    text = render_markdown(made.report())
    assert headings(text)[:2] == [
        "Conformance: 3 of 3 jobs unexpected",
        "Unexpected: 2 root causes",
    ]
    assert f"**regressed** `f/a` on `{MIDDLE}`, `{NEW}`\n" in text
    assert "```text\nout is 1, golden 2\nlook there\nat f.py:3\n```" in text
    assert f"again: `conformance run f/a --cell {MIDDLE}`" in text
    assert text.index("**regressed**") < text.index("**changed**")


def test_evidence_is_shown_with_its_root_cause(tmp_path: Path) -> None:
    """Since when, by what, and the file that shows it; text from elsewhere is code."""
    report = job(Directory(tmp_path / "r"), NEW, Verdict.REGRESSED, "out is 1").report()
    (cause,) = find_root_causes(report.records)
    found = Evidence(
        cause=cause.id, case="f/a", cell=NEW, last_good="0.8.2", first_bad="0.8.3", confirmed=True,
        predicate="ends with ValueError", command="uv run repro/x.py", repro="repro/x.py",
        culprits=(Culprit(package="jaxlib", before="0.8.2", after="0.8.3"),),
        unresolved=("@somebody did not answer",),
    )  # fmt: skip
    text = render_markdown(replace(report, evidence={cause.id: CauseEvidence(found)}))
    assert (
        f"""
```text
f/a on {NEW}
last good 0.8.2, first bad 0.8.3, confirmed: ends with ValueError
culprit: jaxlib 0.8.2 -> 0.8.3
reproduction: uv run repro/x.py
@somebody did not answer
```
"""
        in text
    )


def test_jobs_that_say_nothing_about_jax_are_counted(tmp_path: Path) -> None:
    """Faults of the host, jobs that never ended, runs that cannot be read."""
    made = job(Directory(tmp_path / "r"), OLD, Verdict.INFRA, "no disk", outcome=Outcome.INFRA)
    run = made.loaded(plan=(("f/a", OLD), ("f/a", NEW), ("f/b", NEW)))
    text = render_markdown(Report((run,), ("r2/run.json: cannot be read",)))
    assert headings(text)[:3] == [
        "Conformance: nothing unexpected, but not all is known",
        "Runs that cannot be read",
        "Says nothing about JAX: 1 infra, 2 not run",
    ]
    assert "- `r2/run.json: cannot be read`" in text
    assert "```text\nno disk\n```" in text
    assert f"**not_run** `f/a`, `f/b` on `{NEW}`" in text


def test_changes_between_releases_are_grouped(tmp_path: Path) -> None:
    """By what they are and since when, the gravest first."""
    made = Directory(tmp_path / "r")
    for case in ("f/a", "f/b", "f/c", "f/d"):
        made.job(case, OLD, f32(1)).job(case, MIDDLE, error=("TypeError", "no")).job(case, NEW)
    made.job("f/e", OLD, f32(1)).job("f/e", MIDDLE, f32(2))
    made.job("f/f", OLD, error=("TypeError", "no")).job("f/f", MIDDLE, error=("TypeError", "not"))
    text = render_markdown(made.report())
    assert "Against the release before: 4 regressed, 4 fixed, 2 changed." in text
    lines = text.splitlines()
    start = lines.index("- **regressed** in `0.6.2`: `ok` became `TypeError: no`")
    assert lines[start + 1 : start + 8] == [
        "  `f/a`, `f/b`, `f/c` and 1 more on `cpu8`",
        "- **changed** in `0.6.2`: another value",
        "  `f/e` on `cpu8`",
        "- **changed** in `0.6.2`: another message of `TypeError`",
        "  `f/f` on `cpu8`",
        "- **fixed** in `0.8.3`: `TypeError: no` became `ok`",
        "  `f/a`, `f/b`, `f/c` and 1 more on `cpu8`",
    ]


def test_irs_that_warn_are_listed(tmp_path: Path) -> None:
    """How they differ from their goldens; what only informs is not."""
    kept = IrRecord(status=IrStatus.CHANGED, changes=("semantic: `add`", "semantic: b x2"))
    made = job(Directory(tmp_path / "r"), OLD, Verdict.MATCH, ir={"stablehlo": kept, "hlo": kept})
    text = render_markdown(made.report())
    assert "IRs that are not their goldens: 1 warning" in headings(text)
    told = f"**stablehlo** of `f/a` on `{OLD}`\n\n```text\nsemantic: `add`\nsemantic: b x2\n```\n"
    assert told in text
    assert "**hlo**" not in text


def test_families_by_release(tmp_path: Path) -> None:
    """The newest release first; neighbours that are the same are one row."""
    made = Directory(tmp_path / "r").job("f/a", OLD, verdict=Verdict.KNOWN).job("f/b", OLD)
    for cell in (MIDDLE, NEW):
        made.job("f/a", cell).job("f/b", cell).job("g/a", cell, verdict=Verdict.DRIFTED)
    text = render_markdown(made.report())
    assert table(text) == [
        ["track", "release", "`f`", "`g`"],
        ["`cpu8`", "`0.6.2` to `0.8.3`", "`2.`", "`1~`"],
        ["`cpu8`", "`0.5.3`", "`1k 1.`", ""],
    ]
    assert "Jobs by verdict: `k` known, `~` drifted, `.` match." in text


def test_exclusions_are_folded_away(tmp_path: Path) -> None:
    """By reason, with how much each leaves out."""
    left_out = (
        *(Exclusion(case="f/b", cell=c, reason="needs 8 devices, the cell has 4") for c in CELLS),
        Exclusion(case="", cell="gone", reason="no lock"),
    )
    made = job(Directory(tmp_path / "r"), OLD, Verdict.EXCLUDED, "no way here")
    text = render_markdown(made.report(exclusions=left_out))
    assert text.split("<details>")[1].splitlines() == [
        "<summary>5 exclusions, for 3 reasons</summary>",
        "",
        f"- `needs 8 devices`: 1 case in 3 cells, such as `f/b` on `{OLD}`",
        "- `no lock`: every case in 1 cell, such as `gone`",
        f"- `no way here`: 1 case in 1 cell, such as `f/a` on `{OLD}`",
        "",
        "</details>",
    ]


def test_hostile_text_is_escaped(tmp_path: Path) -> None:
    """In every place that a text from elsewhere has."""
    made = Directory(tmp_path / "r")
    error = (HOSTILE, HOSTILE)
    made.job(f"f{HOSTILE}/a", OLD, verdict=Verdict.REGRESSED, reasons=(HOSTILE,) * 2)
    made.job(f"f{HOSTILE}/a", NEW, verdict=Verdict.INFRA, reasons=(HOSTILE,))
    for cell in (OLD, NEW):
        made.job("f/b", cell)
    made.records = [
        replace(r, error=ErrorInfo(type=error[0], message=error[1], where=HOSTILE))
        for r in made.records
    ]
    run = made.loaded(
        exclusions=(Exclusion(case=HOSTILE, cell=HOSTILE, reason=HOSTILE),),
        finished=HOSTILE,
        plan=((HOSTILE, HOSTILE),),
    )
    text = render_markdown(Report((run,), (HOSTILE,)))
    tokens = READER.parse(text)
    inner = [child for token in tokens for child in token.children or ()]
    assert {child.type for child in inner} <= {
        "text", "code_inline", "softbreak", "strong_open", "strong_close",
    }  # fmt: skip
    said = " ".join(child.content for child in inner if child.type == "text")
    for word in ("script", "@", "#", "http", "tick", "item", "\x1b", "\u241b"):
        assert word not in said
    raw = [token.content for token in tokens if token.type == "html_block"]
    assert raw == ["<details><summary>1 exclusion, for 1 reason</summary>\n", "</details>\n"]
    assert headings(text) == [
        "Conformance: 1 of 4 jobs unexpected",
        "Runs that cannot be read",
        "Unexpected: 1 root cause",
        "Says nothing about JAX: 1 infra, 1 not run",
        "Families by release",
    ]
    assert [len(cells) for cells in table(text)] == [4, 4, 4]
    assert flatten(HOSTILE) in spans(text)
    assert set(text) - {"\n"} == {sign for sign in text if sign.isprintable()}


@pytest.mark.parametrize("most", [4_000, 10_000, 60_000])
def test_entries_that_do_not_fit_are_counted(tmp_path: Path, most: int) -> None:
    """Whole entries; never more characters than asked for; code stays whole."""
    made = Directory(tmp_path / "r")
    for number in range(300):
        for cell in (OLD, NEW):
            reason = f"reason {number}\n" + "x" * 10_000
            made.job(f"f/case{number}", cell, verdict=Verdict.CHANGED, reasons=(reason,))
    text = render_markdown(made.report(), most)
    assert len(text) <= most
    assert "more root causes are left out here, which show" in text
    assert headings(text)[-1] == "Families by release"
    assert text.count("```text") * 2 == text.count("```")


def test_a_traceback_is_folded(tmp_path: Path) -> None:
    """With a fence that nothing in it can close."""
    frames = (own(source="``` </details> @team"),)
    text = encode_traceback((RaisedException(type="E", frames=frames),)).decode()
    run = Directory(tmp_path).job(
        "f/a", CELLS[0], verdict=Verdict.REGRESSED, reasons=("raised E",),
        error=("E", ""), texts={"frames": text},
    )  # fmt: skip
    found = render_markdown(run.report())
    assert "<details><summary>Traceback</summary>\n\n````text\ntraceback (most recent" in found
    assert "      ``` </details> @team\nE\n````\n\n</details>" in found
