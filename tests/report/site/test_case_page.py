"""A case's page: what it is, its history, and each change with its evidence."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.cache.differences import DiffCache
from conformance.model.case import Deviation
from conformance.model.outcome import Outcome, Verdict
from conformance.model.run import Exclusion, RunCase, RunCell
from conformance.model.run_files import Culprit, CulpritCommit, Evidence
from conformance.model.traceback import RaisedException, encode_traceback
from conformance.report.report import CauseEvidence
from conformance.report.site.addresses import case_page
from conformance.report.site.case_page import collect_pairs, render_case_pages
from conformance.report.site.causes_page import collect_causes_by_case
from tests.builders import f32
from tests.report.raising import FRAMES, RAISED, own
from tests.report.runs import ADD, CELLS, MULTIPLY, Directory, cell_of
from tests.report.site.examples import suite_report
from tests.report.site.pages import Page

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.report.report import Report

NASTY = "<script>alert(1)</script>\x1b[31m\u202e\x00"
"""What no page may run."""


def page(report: Report, tmp_path: Path, case: str = "f/a") -> Page:
    """Return the page of a case."""
    pages = render_case_pages(
        report, DiffCache(tmp_path / "cache").get, causes=collect_causes_by_case(report)
    )
    return Page(dict(pages)[case_page(case)])


def jobs(folder: Path, *fields: dict[str, Any]) -> Directory:
    """Return a run of `f/a`, a job a release."""
    made = Directory(folder / "run")
    for cell, more in zip(CELLS, fields, strict=False):
        made.job("f/a", cell, **more)
    return made


def test_the_description_of_a_case(tmp_path: Path) -> None:
    """Docstring, source, where it stands and where it comes from."""
    told = RunCase(
        file="cases/f/t.py", line=7, doc="A story.\n\nAnd more.",
        code="@program()\ndef a(env): ...",
        source="jax-ml/jax#123", devices=4, requires=("flax",), releases=">=0.5",
    )  # fmt: skip
    report = jobs(tmp_path, {"value": f32(1)}).report(cases={"f/a": told})
    found = page(report, tmp_path)
    for words in ("A story.", "And more.", "cases/f/t.py:7", "4 devices", "needs flax", "jax>=0.5"):
        assert words in found.text
    assert "".join(found.texts).count("def a(env): ...") == 1
    assert "https://github.com/jax-ml/jax/issues/123" in found.links


def test_a_regressed_case_opens_with_its_cause(tmp_path: Path) -> None:
    """Reason, error, link to the root cause and culprit precede the docstring."""
    wrong: dict[str, Any] = {
        "verdict": Verdict.REGRESSED, "error": ("ValueError", "no such axis"),
        "reasons": ("raised ValueError, golden gave a value",),
    }  # fmt: skip
    about = RunCase(file="cases/f/t.py", line=7, doc="A story.")
    report = jobs(tmp_path, {"value": f32(1)}, wrong).report(cases={"f/a": about})
    opening, _, _ = page(report, tmp_path).text.partition("A story.")
    for words in ("golden gave a value", "ValueError: no such axis", "conformance triage"):
        assert words in opening
    (cause,) = report.causes
    found = Evidence(
        cause=cause.id, case="f/a", cell=CELLS[1], good="0.5.3", last_good="0.6.0",
        first_bad="0.6.1", confirmed=True, predicate="ends with ValueError",
        culprits=(Culprit(package="jaxlib", before="0.6.0", after="0.6.1"),),
        commits=(
            CulpritCommit(
                package="jax", hash="0123456789abcdef", date="2025-01-02", title="change it",
                url="javascript:alert(1)",
            ),
        ),
        remarks=("XLA: 12 updates",),
    )  # fmt: skip
    shown = page(replace(report, evidence={cause.id: CauseEvidence(found)}), tmp_path)
    opening, _, _ = shown.text.partition("A story.")
    for words in ("jaxlib 0.6.0", "0123456789ab", "2025-01-02 change it", "XLA: 12 updates"):
        assert words in opening
    # The evidence comes from elsewhere: the address is made of the hash.
    assert "https://github.com/jax-ml/jax/commit/0123456789abcdef" in shown.links
    assert "javascript:alert(1)" not in shown.links
    assert "conformance triage" not in opening
    assert "../../causes.html#cause-1" in shown.links


def test_a_case_without_a_description_in_its_run(tmp_path: Path) -> None:
    """Its history is there all the same."""
    found = page(jobs(tmp_path, {"value": f32(1)}).report(cases={}), tmp_path)
    assert "cpu8" in found.ids
    assert "Nothing changes between these releases." in found.text


def test_a_value_that_changed(tmp_path: Path) -> None:
    """How far, where, a plot, and what repeats it; an anchor to send to somebody."""
    report = jobs(tmp_path, {"value": f32(1, 2)}, {"value": f32(1, 3)}).report()
    found = page(report, tmp_path)
    assert "cpu8@0.6.2" in found.ids
    assert "#cpu8@0.6.2" in found.links
    assert "out 1 of 2 elements differ, worst at [1]: 3.0 against 2.0" in found.text
    assert "svg" in found.tags
    assert f"conformance run f/a --cell {CELLS[0]} --cell {CELLS[1]}" in found.text


def test_an_ending_that_changed(tmp_path: Path) -> None:
    """Both sides in full."""
    report = jobs(tmp_path, {"value": f32(1)}, {"error": ("TypeError", "no such thing")}).report()
    found = page(report, tmp_path)
    said = "".join(found.texts)
    assert "ok, conforms" in said
    assert "raised, deviates" in said
    assert "TypeError: no such thing" in said
    assert "mark" in found.tags
    assert "regressed" in found.text


def test_an_ir_that_changed_with_its_lines(tmp_path: Path) -> None:
    """The pattern, and both sides of it, with what differs marked."""
    one, other = ({"value": f32(1), "texts": {"hlo": text}} for text in (ADD, MULTIPLY))
    found = page(jobs(tmp_path, one, other).report(), tmp_path)
    assert "cpu8@0.6.2.hlo" in found.ids
    assert "mark" in found.tags
    assert "semantic" in found.text


def test_the_same_change_on_another_track_is_shown_once(tmp_path: Path) -> None:
    """The second refers to the first."""
    made = Directory(tmp_path / "run")
    for cell, text in (("jax0.5.3-py311-{}", ADD), ("jax0.6.2-py311-{}", MULTIPLY)):
        for place in ("cpu8", "tpu.v5e.2x2"):
            made.job("f/a", cell.format(place), f32(1), texts={"hlo": text})
    found = page(made.report(), tmp_path)
    assert "The same as on cpu8 at 0.6.2" in found.text
    assert "#cpu8@0.6.2.hlo" in found.links


def test_a_change_and_its_reversal_are_two(tmp_path: Path) -> None:
    """They have the same title, and neither stands for the other."""
    texts = (ADD, MULTIPLY, ADD)
    fields = ({"value": f32(1), "texts": {"hlo": text}} for text in texts)
    found = page(jobs(tmp_path, *fields).report(), tmp_path)
    assert "The same as on" not in found.text
    assert {"cpu8@0.6.2.hlo", "cpu8@0.8.3.hlo"} <= set(found.ids)


def test_facts_that_differ(tmp_path: Path) -> None:
    """Which, before and after."""
    wider = ADD.replace("f32", "f64")
    one, other = ({"value": f32(1), "texts": {"hlo": text}} for text in (ADD, wider))
    found = page(jobs(tmp_path, one, other).report(), tmp_path)
    assert "results[0] type f32[4] f64[4]" in found.text


def test_declared_deviations_and_exclusions(tmp_path: Path) -> None:
    """Range, what is seen, why, upstream; and the reason of each exclusion."""
    deviation = Deviation(releases="<0.6", error="ValueError", match="no rule",
                          reason="no rule yet",
                          issue="jax-ml/jax#9", packages={"flax": "<1"})  # fmt: skip
    left_out = Exclusion(case="f/a", cell="jax0.4.30-py311-cpu8", reason="needs a newer one")
    other = Exclusion(case="f/b", cell="jax0.4.30-py311-cpu8", reason="of another case")
    report = jobs(tmp_path, {"value": f32(1)}).report(
        cases={"f/a": RunCase(deviations=(deviation,))}, exclusions=(left_out, other)
    )
    found = page(report, tmp_path)
    assert "<0.6, flax<1 all raised ValueError no rule no rule yet jax-ml/jax#9" in found.text
    assert "https://github.com/jax-ml/jax/issues/9" in found.links
    assert "needs a newer one" in found.text
    assert "of another case" not in found.text


def test_every_job_is_listed_with_its_reasons(tmp_path: Path) -> None:
    """The newest first."""
    unsupported = {"outcome": Outcome.UNSUPPORTED, "verdict": Verdict.EXCLUDED,
                   "reasons": ("no such op",), "seconds": {}}  # fmt: skip
    found = page(jobs(tmp_path, {"value": f32(1)}, unsupported).report(), tmp_path)
    assert found.text.index("no such op") < found.text.index("match ok conforms")


def test_a_case_that_only_records_says_why(tmp_path: Path) -> None:
    """Above its docstring; the page of any other case has no such line."""
    directory = (
        Directory(tmp_path / "run").job("f/a", CELLS[0], f32(1)).job("f/b", CELLS[0], f32(1))
    )
    report = directory.report(cases={"f/a": RunCase(records="order is free"), "f/b": RunCase()})
    pages = [content for _, content in render_case_pages(report, DiffCache(tmp_path / "cache").get)]
    assert [b"This case only records: order is free." in page for page in pages] == [True, False]


def test_hostile_text_is_escaped(tmp_path: Path) -> None:
    """Hostile names, docstrings, messages, reasons and code are text."""
    nasty = f"f/a[{NASTY}]"
    told = RunCase(doc=NASTY, code=f"x = '{NASTY}'", source=NASTY, file=NASTY, requires=(NASTY,),
                   deviations=(Deviation(reason=NASTY, match=NASTY, issue=NASTY),))  # fmt: skip
    made = Directory(tmp_path / "run").job(nasty, CELLS[0], f32(1), reasons=(NASTY,))
    made.job(nasty, CELLS[1], error=("ValueError", NASTY + "x" * 10_000_000))
    report = made.report(
        cases={nasty: told}, exclusions=(Exclusion(case=nasty, cell=NASTY, reason=NASTY),)
    )
    ((_, content),) = render_case_pages(report, DiffCache(tmp_path / "cache").get)
    assert len(content) < 200_000
    assert b"<script>alert" not in content
    assert b"\x1b" not in content
    assert b"\x00" not in content
    assert "\u202e".encode() not in content


@pytest.mark.parametrize("points", [0, 1])
def test_the_pairs_that_pages_compare(tmp_path: Path, points: int) -> None:
    """Those of change points, and no others."""
    texts = (ADD, MULTIPLY if points else ADD)
    fields = [{"value": f32(1), "texts": {"hlo": text}} for text in texts]
    pairs = list(collect_pairs(jobs(tmp_path, *fields).report()))
    assert [pair.ir for pair in pairs] == ["hlo"] * points


def test_pages_are_well_formed(tmp_path: Path) -> None:
    """Every element is closed, every anchor stands once, every link on the page has its target."""
    one, other = ({"value": f32(1, n), "texts": {"hlo": t}} for n, t in ((1, ADD), (2, MULTIPLY)))
    found = page(jobs(tmp_path, one, other, {"error": ("E", "m")}).report(), tmp_path)
    assert found.unclosed == []
    assert len(found.ids) == len(set(found.ids))
    assert {link[1:] for link in found.links if link.startswith("#")} <= set(found.ids)


def test_a_test_of_a_suite(tmp_path: Path) -> None:
    """The example that it fails for, its warnings, and a command that names its suite."""
    report = suite_report(tmp_path)
    name = "linear algebra/tests/test_solve.py::test_solve"
    found = page(report, tmp_path, name)
    assert "Fails for this example on 0.8.3, 0.10.2" in found.text
    assert "FutureWarning: x will go" in found.text
    assert f"conformance suite run --cell jax0.10.2-py311-cpu8 'signs::{name}'" in found.text


def test_the_traceback_of_an_unexpected_job(tmp_path: Path) -> None:
    """With its cause, and not a second time with the track."""
    failed = {"verdict": Verdict.REGRESSED, "reasons": ("raised E",), **RAISED}
    found = page(jobs(tmp_path, {"value": f32(1)}, failed).report(), tmp_path).text
    assert found.count("Traceback on") == 1
    assert found.index("cases/f/t.py:7") < found.index("2 frames in jax and numpy")


def test_the_traceback_of_a_declared_failure(tmp_path: Path) -> None:
    """No cause shows it, so the track does: that of the newest release that raised."""
    known = {"verdict": Verdict.KNOWN, "error": ("E", "m")}
    found = page(
        jobs(tmp_path, {**known, "texts": FRAMES}, known, {"value": f32(1)}).report(), tmp_path
    ).text
    assert f"Traceback on {CELLS[0].split('-')[0].removeprefix('jax')}" in found
    assert "jax/_src/core.py:4 in bind" in found


def test_a_traceback_from_elsewhere_is_text(tmp_path: Path) -> None:
    """Shards come from elsewhere."""
    frames = (own(file=f"/{NASTY}", function=NASTY, source=NASTY),)
    text = encode_traceback((RaisedException(type=NASTY, message=NASTY, frames=frames),)).decode()
    failed = {"verdict": Verdict.REGRESSED, "error": ("E", "m"), "texts": {"frames": text}}
    report = jobs(tmp_path, failed).report()
    pages = render_case_pages(
        report, DiffCache(tmp_path / "c").get, causes=collect_causes_by_case(report)
    )
    content = dict(pages)[case_page("f/a")].decode()
    assert "alert(1)" in content
    assert not any(mark in content for mark in ("<script>alert", "\x1b", "\u202e", "\x00"))


def test_an_environment_is_compared_with_its_release(tmp_path: Path) -> None:
    """What the user's own jax does otherwise than the release is a change of its track."""
    run = Directory(tmp_path)
    own = RunCell(
        id="path-dev-0a1b2c3d-py311-cpu8", selector="path:/dev/bin/python@cpu8",
        versions={"jax": "0.8.3"},
    )  # fmt: skip
    run.job("f/a", CELLS[0], f32(3)).job("f/a", CELLS[2], f32(1)).job("f/a", own.id, f32(2))
    run.job("f/b", CELLS[2], f32(1))
    report = run.report(cells=(*map(cell_of, (CELLS[0], CELLS[2])), own))
    assert list(report.timelines("f/b")) == ["cpu8"]
    text = page(report, tmp_path).text
    assert "cpu8 path dev" in text
    assert "0.8.3 (release)" in text
    command = f"conformance run f/a --cell {CELLS[2]} --cell path:/dev/bin/python@cpu8"
    assert command in text
