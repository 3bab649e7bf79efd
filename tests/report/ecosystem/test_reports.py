"""Outcomes of libraries in a terminal, as a page, and as an issue."""

from __future__ import annotations

import pytest

from conformance.ecosystem.causes import find_ecosystem_causes
from conformance.ecosystem.library import Library
from conformance.ecosystem.outcome import Failure, LibraryOutcome, LibraryRecord
from conformance.report.ecosystem.issue import render_library_issue
from conformance.report.ecosystem.markdown import render_ecosystem_markdown
from conformance.report.ecosystem.summary import EcosystemSummary, describe_record
from conformance.report.ecosystem.text import (
    make_ecosystem_json,
    render_cause,
    render_counts,
    render_record,
    render_tables,
)
from conformance.scan.hits import Hit, HitKind
from tests.ecosystem.builders import BOUNDS, TESTS, record

GONE = "ImportError: cannot import name 'Tracer' from 'jax.core' (core.py)"
HIT = Hit(name="jax.core.Tracer", kind=HitKind.REMOVED, release="0.8.0", text="", is_loud=True)
FAILURE = Failure(test="test_chex.py::test_one", error="TypeError: | `x`", where="chex/a.py:3")
RECORDS = [
    record("chex", "0.7.2", "0.1.90"),
    record("chex", "0.8.1", "0.1.91", GONE),
    record("chex", "0.8.1", "0.1.90", policy=BOUNDS, outcome=TESTS, failures=(FAILURE,), tests=4),
    record("optax", "0.7.2", "", outcome=LibraryOutcome.NO_VERSION),
    record(
        "optax", "0.8.1", "0.2.8", outcome=LibraryOutcome.NOT_INSTALLABLE,
        reason="optax==0.2.8 depends on jax<0.8",
    ),
]  # fmt: skip


def summarize(records: list[LibraryRecord]) -> EcosystemSummary:
    """Return records with their root causes."""
    libraries = {
        name: Library(name=name, repository=f"a/{name}", imports=(name,), program="assert x")
        for name in ("chex", "optax")
    }
    causes = find_ecosystem_causes(records, lambda name, release: HIT)
    return EcosystemSummary(libraries=libraries, records=records, causes=causes)


@pytest.fixture
def summary() -> EcosystemSummary:
    """Two libraries on two releases."""
    return summarize(RECORDS)


def test_record_in_a_line() -> None:
    """With its first error and place, or the requirement that forbids it."""
    assert [render_record(one) for one in RECORDS[1:]] == [
        f"chex 0.1.91 on jax 0.8.1 (release): import fails: {GONE}",
        "chex 0.1.90 on jax 0.8.1 (bounds): 1 of 4 tests fail: TypeError: | `x` at chex/a.py:3",
        "optax on jax 0.7.2 (release): no version",
        "optax 0.2.8 on jax 0.8.1 (release): not installable: optax==0.2.8 depends on jax<0.8",
    ]


def test_cell_of_a_table() -> None:
    """The version and the outcome; nothing for a library that was not tested."""
    assert [describe_record(one) for one in (None, *RECORDS)] == [
        "", "0.1.90 ok", "0.1.91 no import", "0.1.90 1/4 fail", "-", "0.2.8 not installable",
    ]  # fmt: skip


def test_tables_have_a_column_for_each_release(summary: EcosystemSummary) -> None:
    """A table for each policy with outcomes."""
    assert [line.plain for line in render_tables(summary)] == [
        "release: versions of the release date",
        "library  jax 0.7.2  jax 0.8.1",
        "chex     0.1.90 ok  0.1.91 no import",
        "optax    -          0.2.8 not installable",
        "",
        "bounds: versions that requirements admit today",
        "library  jax 0.7.2  jax 0.8.1",
        "chex                0.1.90 1/4 fail",
        "optax",
        "",
    ]


def test_cause_and_counts(summary: EcosystemSummary) -> None:
    """The release comes from the API, the rest from the records."""
    assert [*render_cause(summary.causes[0])] == [
        "jax.core.Tracer is gone since jax 0.8.0: 1 library",
        f"  {GONE}",
        "  hits chex 0.1.91 on jax 0.8.1",
    ]
    assert [*render_counts(summary)] == [
        "release: 1 ok, 1 import fails, 1 not installable, 1 no version", "bounds: 1 tests fail",
    ]  # fmt: skip


def test_json_has_records_and_causes(summary: EcosystemSummary) -> None:
    """For scripts."""
    data = make_ecosystem_json(summary)
    assert [one["library"] for one in data["records"]] == ["chex"] * 3 + ["optax"] * 2
    assert data["causes"][0]["libraries"] == {"chex": ["0.1.91"]}


def test_page_has_causes_tables_and_refusals(summary: EcosystemSummary) -> None:
    """A bar in an error does not divide a row of a table."""
    page = render_ecosystem_markdown(summary)
    assert "| library | 0.7.2 | 0.8.1 |" in page
    assert "| optax 0.2.8 | 0.8.1 | optax==0.2.8 depends on jax<0.8 |" in page
    assert "`` TypeError: \\| `x` ``" in page
    assert "2 libraries on 2 releases, 4 tests; 0 tests flaky." in page


def test_issue_is_about_the_newest_version_that_fails(summary: EcosystemSummary) -> None:
    """With what is gone, and the commands that show it."""
    issue = render_library_issue(summary, summary.libraries["chex"])
    assert issue.startswith(f"# chex 0.1.91 does not import on jax 0.8.1: {GONE}\n")
    assert "`jax.core.Tracer` is gone since jax 0.8.0." in issue
    assert "uv pip install chex==0.1.91 jax==0.8.1\npython -c 'import chex'" in issue
    assert "| bounds |  | 0.1.90 1/4 fail |" in issue


def test_newest_record_decides_the_badge(summary: EcosystemSummary) -> None:
    """The first policy counts; a library that was not tested on the newest release has none."""
    newest = summary.find_newest("chex")
    assert newest is not None
    assert (newest.jax, newest.summary) == ("0.8.1", "import fails")
    old = summarize([record("optax", "0.7.2"), record("chex", "0.8.1")])
    assert old.find_newest("optax") is None
