"""The first page and its data: small, whole, and safe wherever they are put."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from conformance.report.site.matrix_page import (
    MATRIX_DATA,
    SEARCH_DATA,
    render_matrix_pages,
    render_script,
)
from tests.report.runs import Directory

from .examples import full_report, hostile_report
from .pages import Page

if TYPE_CHECKING:
    from pathlib import Path


def test_pages_and_data(tmp_path: Path) -> None:
    """The page with its story, and two scripts of data."""
    made = dict(render_matrix_pages(full_report(tmp_path)))
    assert set(made) == {"index.html", MATRIX_DATA, SEARCH_DATA}
    page = Page(made["index.html"])
    assert page.unclosed == []
    assert "3 of 26 jobs are unexpected" in page.text
    assert "jax 0.5.3 to 0.10.2, 5 of them" in page.text


def test_the_same_report_gives_the_same_pages(tmp_path: Path) -> None:
    """To the byte."""
    report = full_report(tmp_path)
    assert list(render_matrix_pages(report)) == list(render_matrix_pages(report))


def test_the_title_reports_nothing_unexpected(tmp_path: Path) -> None:
    """In the headline, and without a list of what is wrong."""
    run = Directory(tmp_path).job("f/a", "jax0.9.0-py311-cpu8")
    made = dict(render_matrix_pages(run.report()))
    page = Page(made["index.html"])
    assert "Nothing unexpected in 1 jobs" not in page.text
    assert "Nothing unexpected in 1 job" in page.text
    assert b'class="alarm"' not in made["index.html"]


def test_a_job_of_an_unknown_cell_is_counted(tmp_path: Path) -> None:
    """A run that forgot its cells is told of as far as it goes."""
    run = Directory(tmp_path).job("f/a", "jax0.9.0-py311-cpu8")
    made = dict(render_matrix_pages(run.report(cells=())))
    assert "Nothing unexpected in 1 job" in Page(made["index.html"]).text


@pytest.mark.parametrize("text", ["</script>", "<!--", "\u2028\u2029", "\ud800", '"\\', "é"])
def test_script_is_ascii_and_ends_nothing(text: str) -> None:
    """Whatever is in the data, it comes back, and no sign of it is one of HTML."""
    made = render_script("search", {"text": [text]})
    assert b"<" not in made
    body = made.decode("ascii").partition("conformance.search=")[2].rstrip(";\n")
    assert json.loads(body) == {"text": [text]}


def test_hostile_texts_of_the_page(tmp_path: Path) -> None:
    """The page without scripts holds no element that others wrote, and a huge text is cut."""
    made = dict(render_matrix_pages(hostile_report(tmp_path)))
    page = Page(made["index.html"])
    assert page.unclosed == []
    assert page.tags.count("script") == 8
    assert page.tags.count("img") == 1
    assert sum(map(len, made.values())) < 100_000
