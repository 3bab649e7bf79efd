"""The page of libraries."""

from __future__ import annotations

from conformance.report.report import Report
from conformance.report.site.ecosystem_page import render_ecosystem_page
from tests.ecosystem.builders import record
from tests.report.ecosystem.test_reports import GONE, summarize


def test_page_has_outcomes_and_a_badge_for_each_library() -> None:
    """Text from elsewhere is no markup."""
    records = [
        record("chex", "0.8.1", "0.1.91", GONE),
        record("optax", "0.8.1", "0.2.8", "ValueError: <b>1</b>"),
    ]
    files = dict(render_ecosystem_page(Report((), ecosystem=summarize(records))))
    assert [*files] == [
        "ecosystem.html", "badges/library-chex.svg", "badges/library-optax.svg",
    ]  # fmt: skip
    text = files["ecosystem.html"].decode()
    assert "jax 0.8.0" in text
    assert "<td>0.1.91 no import" in text
    assert "&lt;b&gt;1&lt;/b&gt;" in text
    assert "jax 0.8.1: import fails" in files["badges/library-chex.svg"].decode()


def test_site_without_outcomes_has_no_page() -> None:
    """Nor a link to it."""
    assert list(render_ecosystem_page(Report(()))) == []
