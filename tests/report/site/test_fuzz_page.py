"""The page of fuzzing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.report.fuzz.summary import summarize_campaigns
from conformance.report.report import Report
from conformance.report.site.fuzz_page import render_fuzz_page
from tests.fuzz.test_script_file import make_finding
from tests.report.fuzz.test_issue import CHANGED
from tests.report.fuzz.test_markdown import make_log

if TYPE_CHECKING:
    from pathlib import Path


def test_a_finding_has_its_results_and_its_program(tmp_path: Path) -> None:
    """The fill of a release shows whether NumPy agrees; text from elsewhere is no markup."""
    new = make_finding(id="abc", releases=("0.3.0",), results=CHANGED, example="<b>1</b>")
    known = make_finding(id="def", operations=("jnp.cos",), known="numerics/cosines")
    summary = summarize_campaigns([make_log(tmp_path / "one", new, known)])
    ((path, content),) = render_fuzz_page(Report((), fuzz=summary))
    text = content.decode()
    assert path == "fuzz.html"
    assert "<b>3</b> programs in 1 campaign" in text
    assert '<article class="finding new" id="abc">' in text
    assert 'class="range right" role="listitem" style="flex-grow: 2"><b>0.1.0 to 0.2.0</b>' in text
    assert 'class="range wrong"' in text
    assert "known: numerics/cosines" in text
    assert "&lt;b&gt;1&lt;/b&gt;" in text
    assert ">sin</span>" in text


def test_a_site_without_campaigns_has_no_page() -> None:
    """Nor a link to it."""
    assert list(render_fuzz_page(Report(()))) == []
