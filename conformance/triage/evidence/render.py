"""The evidence on a root cause, in words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.model.evidence import Culprit, Evidence

FILES: Final = 3
"""Changed files that are named of a package."""


def evidence_lines(found: Evidence) -> Iterator[str]:
    """Yield evidence, a line for each part."""
    yield f"{found.case} on {found.cell}"
    if found.first_bad:
        sure = "confirmed" if found.confirmed else "not confirmed"
        yield f"last good {found.last_good}, first bad {found.first_bad}, {sure}: {found.asked}"
    for culprit in found.culprits:
        yield f"culprit: {culprit_line(culprit)}"
    if found.repro:
        yield f"reproduction: {found.command}"
    yield from found.untold


def culprit_line(culprit: Culprit) -> str:
    """Return a culprit in a line, e.g. `jax 0.8.0 -> 0.8.1`."""
    if not culprit.files:
        return f"{culprit.package} {culprit.before} -> {culprit.after}"
    count = len(culprit.files)
    named = ", ".join(culprit.files[:FILES])
    more = f" and {count - FILES} more" if count > FILES else ""
    files = "file" if count == 1 else "files"
    return f"{culprit.package} {culprit.after} with {count} changed {files}: {named}{more}"
