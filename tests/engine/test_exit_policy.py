"""The results for which a run fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.exit_policy import FailOn, compute_exit_code, decide_exit
from conformance.engine.runs.nights import compare_nights, make_night, merge_by_culprit
from conformance.engine.runs.root_causes import find_root_causes
from conformance.model.outcome import Conformance, ExitCode, Outcome, Verdict
from conformance.model.run import RunInfo
from conformance.model.run_files import Culprit, Evidence
from tests.engine.records import record

if TYPE_CHECKING:
    from conformance.model.record import Record
    from conformance.model.run_files import Since

BAD = record("f/a", "c", Verdict.REGRESSED, "out 1 against 2")
OTHER = record("f/b", "c", Verdict.REGRESSED, "dtype f4 against f8")
FINE = record("f/c", "c", Verdict.MATCH)
INFRA = replace(record("f/d", "c", Verdict.INFRA, "no network"), outcome=Outcome.INFRA)
LINKED = ("f/a", "regressed", "out # against #")


def since(before: list[Record], after: list[Record]) -> Since:
    """Return what changed from one night to another."""
    return compare_nights(make_night("one", RunInfo(), before), make_night("two", RunInfo(), after))


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
def test_only_new_causes_fail(
    before: list[Record], after: list[Record], expected: ExitCode
) -> None:
    """Faults of the host count as always."""
    assert decide_exit(FailOn.NEW, after, since(before, after)).code is expected


@pytest.mark.parametrize(
    ("records", "known", "expected"),
    [
        ([BAD], set(), ExitCode.UNEXPECTED),
        ([BAD], {LINKED}, ExitCode.OK),
        ([BAD, OTHER], {LINKED}, ExitCode.UNEXPECTED),
    ],
)
def test_causes_without_an_issue_fail(
    records: list[Record], known: set[tuple[str, str, str]], expected: ExitCode
) -> None:
    """Although the last night had them."""
    assert decide_exit(FailOn.NEW, records, since(records, records), known).code is expected


def test_without_an_earlier_night_every_cause_is_new() -> None:
    """Except causes with an issue."""
    assert decide_exit(FailOn.NEW, [BAD], None).code is ExitCode.UNEXPECTED
    assert decide_exit(FailOn.NEW, [BAD], None, {LINKED}).code is ExitCode.OK


@pytest.mark.parametrize(
    ("policy", "records", "known", "reason"),
    [
        (FailOn.UNEXPECTED, [BAD, OTHER], None, "2 root causes are unexpected"),
        (FailOn.UNEXPECTED, [FINE], None, ""),
        (FailOn.UNEXPECTED, [INFRA, FINE], None, "1 job ended for reasons of the host"),
        (FailOn.NEW, [BAD], set(), "1 root cause has no linked issue"),
        (FailOn.NEW, [BAD, OTHER], {LINKED}, "1 root cause has no linked issue"),
        (FailOn.NEW, [BAD], {LINKED}, "1 root cause is unexpected, with a linked issue"),
        (FailOn.NEW, [BAD, OTHER], None, "2 root causes are new: no earlier run is known"),
        (FailOn.NEVER, [BAD], None, "1 root cause is unexpected, and --fail-on never was given"),
    ],
)
def test_the_exit_status_has_a_reason(
    policy: FailOn, records: list[Record], known: set[tuple[str, str, str]] | None, reason: str
) -> None:
    """A user need not count root causes to see why a nightly failed."""
    assert decide_exit(policy, records, None, known).reason == reason


def test_root_causes_are_counted_as_triage_merged_them() -> None:
    """In the exit status and in what changed since the previous run alike."""
    evidence = {
        cause.id: Evidence(
            cause=cause.id, case="f/a", cell="c", last_good="0.6.1", first_bad="0.6.2",
            confirmed=True, culprits=(Culprit(package="jax", before="0.6.1", after="0.6.2"),),
        )
        for cause in find_root_causes([BAD, OTHER])
    }  # fmt: skip
    assert decide_exit(FailOn.UNEXPECTED, [BAD, OTHER], None, None, evidence).reason == (
        "1 root cause is unexpected"
    )
    before = make_night("one", RunInfo(), [BAD, OTHER], None, evidence)
    told = compare_nights(before, make_night("two", RunInfo(), [BAD, OTHER], None, evidence))
    assert [len(one.jobs) for one in told.still] == [2]
    # A run that was compared before triage is as it would be after it.
    apart = since([BAD, OTHER], [BAD, OTHER])
    assert [len(one.jobs) for one in apart.still] == [1, 1]
    assert merge_by_culprit(apart, evidence).still[0].jobs == told.still[0].jobs
    assert [one.nights for one in merge_by_culprit(apart, evidence).still] == [2]
    decision = decide_exit(FailOn.NEW, [BAD, OTHER], told, None, evidence)
    assert decision.code is ExitCode.OK


UNKNOWN = replace(record("f/e", "c", Verdict.NEW), conformance=Conformance.UNKNOWN)
RECORDS = st.lists(st.sampled_from([BAD, OTHER, FINE, INFRA, UNKNOWN]), max_size=4)


@given(RECORDS, RECORDS)
def test_a_policy_forgives_unexpected_jobs_only(before: list[Record], after: list[Record]) -> None:
    """A run that fails for new results fails for all; no policy adds a failure."""
    told = since(before, after)
    strict = decide_exit(FailOn.UNEXPECTED, after, told).code
    new = decide_exit(FailOn.NEW, after, told).code
    never = decide_exit(FailOn.NEVER, after, told).code
    assert strict is compute_exit_code(after)
    assert new in {strict, never}
    assert never is not ExitCode.UNEXPECTED
    if strict is not ExitCode.UNEXPECTED:
        assert strict is new is never
