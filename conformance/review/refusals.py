"""Which observations never become golden, and why. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.golden.spans import is_release
from conformance.model.observation import is_case_error
from conformance.model.outcome import Conformance, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.model.record import Record

NEVER: Final = frozenset(
    {Verdict.INFRA, Verdict.EXCLUDED, Verdict.FLAKY, Verdict.CRASHED, Verdict.TIMED_OUT}
)
AS_RECORDED: Final = frozenset({Verdict.MATCH, Verdict.DRIFTED, Verdict.KNOWN})
"""Verdicts of what goldens and deviations say already."""
CASE_IS_WRONG: Final = "the case itself is wrong; fix it and run it again"
_BUILT: Final = ("jax", "jaxlib")


def refusal(record: Record, versions: Mapping[str, str]) -> str:
    """Return why a record may not become golden, empty when it may.

    What its case did wrong is nothing about jax; a golden that cannot be read is put right.

    Args:
        record: A judged record.
        versions: Package versions of its cell.
    """
    if is_case_error(record.error):
        return CASE_IS_WRONG
    if built := unreleased(versions):
        return f"{built} is no release: what a nightly or a development build shows is never golden"
    if record.golden_at_fault:
        return ""
    if record.verdict in NEVER:
        return f"what is {record.verdict} is never golden"
    if is_undeclared(record):
        return "it deviates from its reference, and no deviation declares that"
    return ""


def is_undeclared(record: Record) -> bool:
    """Say whether a record deviates from its reference as nothing declares."""
    return record.verdict is Verdict.REGRESSED and record.conformance is Conformance.DEVIATES


def passed_over(record: Record, versions: Mapping[str, str]) -> bool:
    """Say whether a record is as recorded, on what is no release: it needs no golden of its own.

    Args:
        record: A judged record.
        versions: Package versions of its cell.
    """
    return record.verdict in AS_RECORDED and bool(unreleased(versions))


def unreleased(versions: Mapping[str, str]) -> str:
    """Return the package of a cell that was never released, empty if both of jax's were.

    Args:
        versions: Package versions of the cell.
    """
    found = (f"{name} {versions[name]}" for name in _BUILT if not _released(versions.get(name)))
    return next(found, "")


def _released(version: str | None) -> bool:
    return version is None or is_release(version)
