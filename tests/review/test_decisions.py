"""Decisions: which jobs they are about, how they are kept, taken back and written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.errors import UsageError
from conformance.model.outcome import Verdict
from conformance.review.decisions import (
    Choice,
    Decided,
    Decision,
    Review,
    as_written,
    chosen,
    decide,
    decided,
    decision_on,
    dumps,
    job_of,
    loads,
    take_back,
)
from conformance.review.groups import Group, groups

from .members import member

JOBS = [
    member("fam/a", release, Verdict.CHANGED, "fact x: y", artifacts={"value": release})
    for release in ("0.6.0", "0.6.2")
]


def group() -> Group:
    """Return both jobs as one group."""
    (found,) = groups(JOBS)
    return found


def decision(of: Group, choice: Choice = Choice.ACCEPT) -> Decision:
    """Return a decision on a whole group."""
    return Decision(group=of.id, choice=choice, jobs=tuple(map(job_of, of.members)))


def test_a_decision_is_read_back() -> None:
    """Whole; and it is on its group alone."""
    one = group()
    review = loads(dumps(decide(Review(), decision(one))), "x")
    assert (decided(review, one), decision_on(review, one)) == (Decided.DONE, decision(one))
    assert [c.members for c in chosen(review, [one])] == [one.members]
    assert decided(review, replace(one, id="other")) is Decided.OPEN


def test_jobs_that_come_later_are_not_decided_on() -> None:
    """What was not looked at is not accepted."""
    one = group()
    first = replace(one, members=one.members[:1])
    review = decide(Review(), decision(first))
    assert decided(review, one) is Decided.PARTLY
    assert [c.members for c in chosen(review, [one])] == [first.members]


def test_a_job_that_shows_something_else_now_is_not_decided_on() -> None:
    """Though it is of the same group."""
    one = group()
    review = decide(Review(), decision(one))
    other = member("fam/a", "0.6.0", Verdict.CHANGED, "fact x: y", artifacts={"value": "new"})
    assert decided(review, replace(one, members=(other,))) is Decided.OPEN


def test_the_last_decision_counts() -> None:
    """The one before is gone, and so is it when it is taken back."""
    one = group()
    review = decide(decide(Review(), decision(one)), decision(one, Choice.REJECT))
    assert [kept.choice for kept in review.decisions] == [Choice.REJECT]
    assert take_back(review, one) == Review()


def test_what_is_written_is_decided_no_more() -> None:
    """It cannot be taken back; what is pending again is undecided."""
    one = group()
    review = decide(Review(), decision(one))
    written = as_written(review, review.decisions, {"a": "b"})
    assert (decided(written, one), chosen(written, [one])) == (Decided.OPEN, ())
    assert take_back(written, one) == written
    assert as_written(written, (), {"b": "c"}).same == {"a": "c", "b": "c"}


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"format": 9}', b"\xff"])
def test_what_is_no_review_is_said(text: bytes) -> None:
    """With the file."""
    with pytest.raises(UsageError, match=r"review\.json: .*delete it"):
        loads(text, "run/review.json")
