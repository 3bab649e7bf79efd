"""For what a run fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.nights import compare, night_of
from conformance.engine.policy import FailOn, exit_by
from conformance.engine.runner import exit_code
from conformance.model.outcome import Conformance, ExitCode, Outcome, Verdict
from conformance.model.run import RunInfo
from tests.engine.records import record

if TYPE_CHECKING:
    from conformance.model.record import Record
    from conformance.model.since import Since

BAD = record("f/a", "c", Verdict.REGRESSED, "out 1 against 2")
OTHER = record("f/b", "c", Verdict.REGRESSED, "dtype f4 against f8")
FINE = record("f/c", "c", Verdict.MATCH)
INFRA = replace(record("f/d", "c", Verdict.INFRA, "no network"), outcome=Outcome.INFRA)
LINKED = ("f/a", "regressed", "out # against #")


def since(before: list[Record], after: list[Record]) -> Since:
    """Return what changed from one night to another."""
    return compare(night_of("one", RunInfo(), before), night_of("two", RunInfo(), after))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([FINE], [BAD], ExitCode.UNEXPECTED),
        ([BAD], [BAD], ExitCode.OK),
        ([BAD], [BAD, OTHER], ExitCode.UNEXPECTED),
        ([BAD, OTHER], [BAD, FINE], ExitCode.OK),
        ([BAD], [BAD, INFRA], ExitCode.INFRA),
        ([INFRA], [FINE], ExitCode.OK),
    ],
)
def test_only_what_is_new_fails(
    before: list[Record], after: list[Record], expected: ExitCode
) -> None:
    """And faults of the host are told as ever."""
    assert exit_by(FailOn.NEW, after, since(before, after)) is expected


@pytest.mark.parametrize(
    ("records", "known", "expected"),
    [
        ([BAD], set(), ExitCode.UNEXPECTED),
        ([BAD], {LINKED}, ExitCode.OK),
        ([BAD, OTHER], {LINKED}, ExitCode.UNEXPECTED),
    ],
)
def test_where_issues_are_linked_what_has_none_fails(
    records: list[Record], known: set[tuple[str, str, str]], expected: ExitCode
) -> None:
    """Although it was there the last night."""
    assert exit_by(FailOn.NEW, records, since(records, records), known) is expected


def test_without_a_night_before_all_is_new() -> None:
    """But for what has an issue."""
    assert exit_by(FailOn.NEW, [BAD], None) is ExitCode.UNEXPECTED
    assert exit_by(FailOn.NEW, [BAD], None, {LINKED}) is ExitCode.OK


UNKNOWN = replace(record("f/e", "c", Verdict.NEW), conformance=Conformance.UNKNOWN)
RECORDS = st.lists(st.sampled_from([BAD, OTHER, FINE, INFRA, UNKNOWN]), max_size=4)


@given(RECORDS, RECORDS)
def test_a_policy_only_ever_forgives_what_is_unexpected(
    before: list[Record], after: list[Record]
) -> None:
    """What fails for what is new fails for all; nothing fails for nothing."""
    told = since(before, after)
    strict = exit_by(FailOn.UNEXPECTED, after, told)
    new = exit_by(FailOn.NEW, after, told)
    never = exit_by(FailOn.NEVER, after, told)
    assert strict is exit_code(after)
    assert new in {strict, never}
    assert never is not ExitCode.UNEXPECTED
    if strict is not ExitCode.UNEXPECTED:
        assert strict is new is never
