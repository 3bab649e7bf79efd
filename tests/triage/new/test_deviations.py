"""Deviations and releases that follow from the results of a case."""

from __future__ import annotations

import re

import pytest

from conformance.model.outcome import Conformance, Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.search.predicates import GOOD, PointKind, PointState
from conformance.triage.new.case_file import Declarations
from conformance.triage.new.deviations import (
    find_pattern,
    find_stretches,
    format_edge,
    propose_deviations,
)

RELEASES = ["0.4.30", "0.5.0", "0.6.0", "0.6.1", "0.7.0", "0.9.0.1"]
PLAIN = Declarations(doc="One.")
UNKNOWN = PointState(PointKind.UNKNOWN)


def record(outcome: Outcome = Outcome.OK, type_: str = "", message: str = "") -> Record:
    """Return the record of a job."""
    error = ErrorInfo(type=type_, message=message) if type_ else None
    return Record(
        case="family/one", cell="cell", case_hash="", cell_hash="", outcome=outcome,
        stage=Stage.EXECUTE, error=error, conformance=Conformance.UNKNOWN,
    )  # fmt: skip


def failed(type_: str = "TypeError", message: str = "it is wrong") -> tuple[PointState, Record]:
    """Return a release that fails."""
    return PointState(PointKind.OTHER, f"{type_}: {message}"), record(
        Outcome.RAISED, type_, message
    )


ABSENT = failed("AttributeError", "module 'jax' has no attribute 'set_mesh'")
REFUSED = (
    PointState(PointKind.OTHER, "flag"),
    record(Outcome.UNSUPPORTED, "unsupported", "no such flag"),
)
WRONG = (PointState(PointKind.BAD, "value 0"), record())
RIGHT = (GOOD, record())
SILENT = (UNKNOWN, record(Outcome.INFRA))


def declared(*shown: tuple[PointState, Record] | None) -> tuple[list[str], str]:
    """Return ranges of the deviations proposed, and the releases of the case."""
    states = {n: one[0] for n, one in enumerate(shown) if one is not None}
    records = {n: one[1] for n, one in enumerate(shown) if one is not None}
    proposal = propose_deviations(PLAIN, find_stretches(states, records, RELEASES))
    ranges = [re.findall(r'"jax([^"]*)"', text) for text in proposal.deviations]
    return ["".join(found) for found in ranges], proposal.releases


@pytest.mark.parametrize(
    ("shown", "ranges", "releases"),
    [
        ((RIGHT,) * 6, [], ""),
        ((failed(), failed(), RIGHT, RIGHT, RIGHT, RIGHT), ["<0.6"], ""),
        ((RIGHT, RIGHT, RIGHT, failed(), failed(), failed()), [">=0.6.1"], ""),
        ((RIGHT, failed(), failed(), RIGHT, RIGHT, RIGHT), [">=0.5,<0.6.1"], ""),
        ((RIGHT, RIGHT, RIGHT, failed(), RIGHT, RIGHT), ["==0.6.1"], ""),
        ((failed(), failed(), failed("KeyError"), WRONG, WRONG, WRONG),
         ["<0.6", "==0.6.0", ">=0.6.1"], ""),
        ((failed(), None, None, None, None, failed()), [""], ""),
        ((failed(), SILENT, RIGHT, None, None, RIGHT), ["<0.6"], ""),
        ((ABSENT, ABSENT, RIGHT, RIGHT, RIGHT, failed()), [">=0.9.0.1"], ">=0.6"),
        ((ABSENT, failed(), failed(), RIGHT, RIGHT, RIGHT), ["<0.6.1"], ">=0.5"),
        ((RIGHT, RIGHT, RIGHT, RIGHT, ABSENT, ABSENT), [">=0.7"], ""),
        ((RIGHT, RIGHT, REFUSED, REFUSED, REFUSED, REFUSED), [], "<0.6"),
        ((RIGHT, RIGHT, WRONG, WRONG, REFUSED, REFUSED), [">=0.6"], "<0.7"),
    ],
)  # fmt: skip
def test_declared_ranges_follow_from_results(
    shown: tuple[tuple[PointState, Record] | None, ...], ranges: list[str], releases: str
) -> None:
    """The case does not apply to releases without a function, or whose XLA refuses a flag."""
    assert declared(*shown) == (ranges, releases)


def test_deviation_contains_the_observed_failure() -> None:
    """Its reason marks it as proposed."""
    state, one = failed("TypeError", "it got 3 of x[0]. Do this instead.")
    states, records = {0: state, 1: GOOD}, {0: one, 1: record()}
    sourced = Declarations(doc="One.", keywords={"source": "a/b#1"})
    (text,) = propose_deviations(sourced, find_stretches(states, records, RELEASES)).deviations
    for part in ('"jax<0.5"', 'error="TypeError"', 'reason="proposed', 'issue="a/b#1"'):
        assert part in text
    states, records = {0: WRONG[0], 1: GOOD}, {0: WRONG[1], 1: record()}
    (text,) = propose_deviations(PLAIN, find_stretches(states, records, RELEASES)).deviations
    assert 'outcome="ok"' in text


def test_pattern_is_a_raw_string() -> None:
    """Its backslashes are not doubled."""
    state, one = failed("TypeError", "clip() got an unexpected argument")
    states, records = {0: state, 1: GOOD}, {0: one, 1: record()}
    (text,) = propose_deviations(PLAIN, find_stretches(states, records, RELEASES)).deviations
    assert r'''match=r"clip\(\) got an unexpected argument"''' in text


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (["No rule for while. As a workaround, pass it"], "No rule for while"),
        (["clip() got an argument 'a_max'"], r"clip\(\) got an argument 'a_max'"),
        (["at 0x7f0011223344 it is wrong"], "it is wrong"),
        (["see /tmp/a/b.py for more of it"], "for more of it"),
        (["a carry must vary", "the carry must vary here"], "carry must vary"),
        (["one", "two"], ""),
        (["or the min/max keywords. Complex values"], "or the min/max keywords"),
        (["odd type (e.g. one) is odd. No."], r"odd type \(e\.g\. one\) is odd"),
        (["two  spaces here"], ""),
        ([""], ""),
        ([f"{'word ' * 40}"], " ".join(["word"] * 15)),
    ],
)
def test_pattern_matches_all_messages(messages: list[str], expected: str) -> None:
    """It leaves out parts that differ in each run."""
    found = find_pattern(messages)
    assert found == expected
    assert all(re.search(found, message) for message in messages)


def test_edges_have_no_trailing_zeros() -> None:
    """`0.6` instead of `0.6.0`."""
    assert list(map(format_edge, RELEASES)) == [
        "0.4.30",
        "0.5",
        "0.6",
        "0.6.1",
        "0.7",
        "0.9.0.1",
    ]
