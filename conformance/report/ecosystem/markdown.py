"""Outcomes of libraries as a Markdown page: root causes, then a table for each policy. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.ecosystem.outcome import LibraryOutcome, VersionPolicy
from conformance.model.upstream import find_thread_url
from conformance.report.ecosystem.summary import POLICIES, describe_record
from conformance.report.ecosystem.text import describe_counts, describe_libraries
from conformance.report.markup import to_code, to_table, wrap
from conformance.report.text import flatten, join_names
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.ecosystem.causes import EcosystemCause
    from conformance.report.ecosystem.summary import EcosystemSummary

HEAD: Final = (
    "Made by `conformance ecosystem --page` from the records in `ecosystem/results.jsonl`. Each "
    "library is installed in an environment of its own for each release of JAX, imported and "
    "tested, with its version chosen by a policy. A cell has the version, and `ok`, the number of "
    "tests that fail twice, `no import`, `not installable`, or `-` for a library that had no "
    "version on the release date."
)
MOST: Final = 160
"""Characters of an error in a table."""


def render_ecosystem_markdown(summary: EcosystemSummary) -> str:
    """Return a page of libraries.

    Args:
        summary: The outcomes.
    """
    return "\n\n".join(_render(summary)) + "\n"


def _render(summary: EcosystemSummary) -> Iterator[str]:
    yield "# Ecosystem"
    yield wrap(HEAD)
    yield wrap(
        f"{plural(len(summary.names), 'library', 'libraries')} on "
        f"{plural(len(summary.releases), 'release')}, {plural(summary.tests, 'test')}; "
        f"{plural(summary.flaky, 'test')} flaky."
    )
    yield "\n".join(
        f"- {policy} ({POLICIES[policy]}): {describe_counts(summary, policy)}"
        for policy in summary.policies
    )
    if summary.causes:
        yield "## Root causes"
        rows = [["error", "since", "libraries", "fails on jax", "change"]]
        yield to_table([*rows, *map(_make_cause_row, summary.causes)])
    for policy in summary.policies:
        yield f"## {POLICIES[policy].capitalize()}"
        yield _render_matrix(summary, policy)
    yield from _render_refusals(summary)


def _make_cause_row(cause: EcosystemCause) -> list[str]:
    change = ""
    if cause.hit is not None and cause.hit.change is not None:
        source = find_thread_url(cause.hit.change.source)
        text = flatten(cause.hit.change.advice or cause.hit.change.summary, MOST)
        change = f"{text} ([upstream]({source}))" if source else text
    return [
        to_code(cause.error, MOST), cause.hit.release if cause.hit is not None else "",
        describe_libraries(cause), join_names(cause.releases, 8), change,
    ]  # fmt: skip


def _render_matrix(summary: EcosystemSummary, policy: VersionPolicy) -> str:
    rows = [["library", *summary.releases]]
    for name in summary.names:
        found = [summary.get(name, release, policy) for release in summary.releases]
        rows.append([name, *map(describe_record, found)])
    return to_table(rows)


def _render_refusals(summary: EcosystemSummary) -> Iterator[str]:
    """Yield the requirements that forbid the version of the release date."""
    refused = [
        record
        for record in summary.records
        if record.outcome is LibraryOutcome.NOT_INSTALLABLE
        and record.policy is VersionPolicy.RELEASE
    ]
    if refused:
        yield "## Requirements that forbid the version of the release date"
        yield to_table([
            ["library", "jax", "requirement"],
            *(
                [f"{one.library} {one.version}", one.jax, flatten(one.reason, MOST)]
                for one in refused
            ),
        ])  # fmt: skip
