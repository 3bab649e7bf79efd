"""The failures of a library as the text of an issue in its repository. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from packaging.version import Version

from conformance.ecosystem.outcome import IMPORT, VersionPolicy
from conformance.model.upstream import find_thread_url
from conformance.report.ecosystem.summary import describe_record
from conformance.report.markup import fence, to_code, to_table
from conformance.report.text import flatten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.ecosystem.library import Library
    from conformance.ecosystem.outcome import LibraryRecord
    from conformance.report.ecosystem.summary import EcosystemSummary

TITLE: Final = 100
"""Characters of an error in a title."""
MOST_FAILURES: Final = 10
"""Failures that an issue names."""


def render_library_issue(summary: EcosystemSummary, library: Library) -> str:
    """Return an issue about the newest failure of a library: its title, then the text.

    Args:
        summary: Outcomes of the library, with a failure.
        library: The library.
    """
    failing = [record for record in summary.records if record.outcome.is_failure]
    newest = max(failing, key=lambda one: (Version(one.version), Version(one.jax)))
    return "\n\n".join(_render(summary, library, newest)) + "\n"


def _render(summary: EcosystemSummary, library: Library, record: LibraryRecord) -> Iterator[str]:
    error = flatten(record.failures[0].error, TITLE)
    verb = "does not import" if record.failures[0].test == IMPORT else "fails"
    yield f"# {library.name} {record.version} {verb} on jax {record.jax}: {error}"
    yield f"For https://github.com/{library.repository}/issues"
    yield "\n".join(
        f"- {to_code(one.test)}: {to_code(one.error)}"
        + (f" at {to_code(one.where)}" if one.where else "")
        for one in record.failures[:MOST_FAILURES]
    )
    if record.culprit:
        yield record.culprit
    for cause in summary.causes:
        hit = cause.hit
        if hit is not None and record in cause.records:
            change = hit.change
            source = "" if change is None else find_thread_url(change.source) or change.source
            advice = "" if change is None else f" {change.advice or change.summary}"
            yield f"{to_code(hit.name)} is gone since jax {hit.release}.{advice} {source}".rstrip()
    yield "## To reproduce"
    yield fence(
        f"uv venv\nuv pip install {library.name}=={record.version} jax=={record.jax}\n"
        + (
            f"python -c 'import {', '.join(library.imports)}'"
            if record.failures[0].test == IMPORT
            else library.program
        ),
        language="sh" if record.failures[0].test == IMPORT else "text",
    )
    yield "## On other releases"
    rows = [["policy", *summary.releases]]
    for policy in summary.policies:
        found = [summary.get(library.name, release, policy) for release in summary.releases]
        rows.append([_describe_policy(policy), *map(describe_record, found)])
    yield to_table(rows)


def _describe_policy(policy: VersionPolicy) -> str:
    return f"{policy} of jax" if policy is VersionPolicy.RELEASE else str(policy)
