"""Outcomes of libraries in a terminal and as JSON: new records, tables, root causes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from rich.text import Text

from conformance.ecosystem.outcome import LibraryOutcome
from conformance.model.upstream import find_thread_url
from conformance.report.ecosystem.summary import POLICIES, SIGNS, describe_record
from conformance.report.text import join_names
from conformance.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.ecosystem.causes import EcosystemCause
    from conformance.ecosystem.outcome import LibraryRecord, VersionPolicy
    from conformance.report.ecosystem.summary import EcosystemSummary

STYLES: Final = {
    LibraryOutcome.OK: "green",
    LibraryOutcome.TESTS_FAIL: "red",
    LibraryOutcome.IMPORT_FAILS: "red",
    LibraryOutcome.NOT_INSTALLABLE: "yellow",
    LibraryOutcome.NO_VERSION: "bright_black",
    LibraryOutcome.UNKNOWN: "bright_black",
}


def render_record(record: LibraryRecord) -> str:
    """Return a record in a line, with the error of its first failure.

    Args:
        record: The record.
    """
    name = f"{record.library} {record.version}".strip()
    reason = record.reason
    if record.failures:
        first = record.failures[0]
        where = f" at {first.where}" if first.where else ""
        reason = f"{first.error}{where}"
    more = f": {reason}" if reason else ""
    return f"{name} on jax {record.jax} ({record.policy}): {record.summary}{more}"


def render_tables(summary: EcosystemSummary) -> Iterator[Text]:
    """Yield the lines of a table of libraries by release, for each policy.

    Args:
        summary: The outcomes.
    """
    for policy in summary.policies:
        yield Text(f"{policy}: {POLICIES[policy]}", "bold")
        rows = [[Text("library"), *(Text(f"jax {release}") for release in summary.releases)]]
        for name in summary.names:
            found = [summary.get(name, release, policy) for release in summary.releases]
            rows.append([Text(name), *map(_render_cell, found)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            # Lines, no table of rich: that would cut them at the width of the terminal.
            for cell, width in zip(row, widths, strict=True):
                cell.pad_right(width - len(cell))
            line = Text("  ").join(row)
            line.rstrip()
            yield line
        yield Text()


def _render_cell(record: LibraryRecord | None) -> Text:
    style = STYLES[record.outcome] if record is not None else ""
    return Text(describe_record(record), style)


def render_cause(cause: EcosystemCause) -> Iterator[str]:
    """Yield the lines of a root cause.

    Args:
        cause: The root cause.
    """
    hit = cause.hit
    head = f"{cause.name} is gone since jax {hit.release}" if hit is not None else cause.error
    yield f"{head}: {plural(len(cause.libraries), 'library', 'libraries')}"
    if hit is not None:
        yield f"  {cause.error}"
        if hit.change is not None:
            source = find_thread_url(hit.change.source) or hit.change.source
            yield f"  {hit.change.advice or hit.change.summary} ({source})"
    yield f"  hits {describe_libraries(cause)} on jax {join_names(cause.releases, 8)}"


def describe_libraries(cause: EcosystemCause) -> str:
    """Return the libraries of a root cause with their versions.

    Args:
        cause: The root cause.
    """
    return ", ".join(f"{name} {join_names(found)}" for name, found in cause.libraries.items())


def render_counts(summary: EcosystemSummary) -> Iterator[str]:
    """Yield the number of each outcome, in a line for each policy.

    Args:
        summary: The outcomes.
    """
    for policy in summary.policies:
        yield f"{policy}: {describe_counts(summary, policy)}"


def describe_counts(summary: EcosystemSummary, policy: VersionPolicy) -> str:
    """Return the number of each outcome under a policy.

    Args:
        summary: The outcomes.
        policy: The policy.
    """
    counts = summary.count(policy)
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in SIGNS if counts[outcome])


def make_ecosystem_json(summary: EcosystemSummary) -> dict[str, Any]:
    """Return outcomes as JSON data.

    Args:
        summary: The outcomes.
    """
    return {
        "records": [msgspec.to_builtins(record) for record in summary.records],
        "causes": [
            {
                "name": cause.name, "error": cause.error, "first": cause.first,
                "libraries": {name: list(found) for name, found in cause.libraries.items()},
                "releases": list(cause.releases),
                "change": cause.hit.change.summary if cause.hit and cause.hit.change else None,
            }
            for cause in summary.causes
        ],
    }  # fmt: skip
