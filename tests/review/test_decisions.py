"""Decisions: which jobs they are about, how they are kept, taken back and written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.errors import UsageError
from conformance.model.outcome import Verdict
from conformance.review.decisions import Choice, Decision, DecisionLog, Progress
from conformance.review.groups import ReviewGroup, group_changes

from .members import member

JOBS = [
    member("fam/a", release, Verdict.CHANGED, "fact x: y", artifacts={"value": release})
    for release in ("0.6.0", "0.6.2")
]


def group() -> ReviewGroup:
    """Return both jobs as one group."""
    (found,) = group_changes(JOBS)
    return found


def decision(of: ReviewGroup, choice: Choice = Choice.ACCEPT) -> Decision:
    """Return a decision on a whole group."""
    return Decision(group=of.id, choice=choice, jobs=tuple(one.key for one in of.members))


def test_a_decision_is_read_back() -> None:
    """Whole; and it is on its group alone."""
    one = group()
    log = DecisionLog.loads(DecisionLog().add(decision(one)).dumps(), "x")
    (found,) = log.find_open([one])
    assert (log.progress(one), found.decision) == (Progress.DONE, decision(one))
    assert found.members == one.members
    assert log.progress(replace(one, id="other")) is Progress.OPEN


def test_jobs_added_later_are_undecided() -> None:
    """Jobs that nobody reviewed are not accepted."""
    one = group()
    first = replace(one, members=one.members[:1])
    log = DecisionLog().add(decision(first))
    assert log.progress(one) is Progress.PARTLY
    assert [c.members for c in log.find_open([one])] == [first.members]


def test_a_job_with_another_result_is_undecided() -> None:
    """Even in the same group."""
    one = group()
    log = DecisionLog().add(decision(one))
    other = member("fam/a", "0.6.0", Verdict.CHANGED, "fact x: y", artifacts={"value": "new"})
    assert log.progress(replace(one, members=(other,))) is Progress.OPEN


def test_the_last_decision_replaces_earlier_ones() -> None:
    """Until it is taken back."""
    one = group()
    log = DecisionLog().add(decision(one), decision(one, Choice.REJECT))
    assert [kept.choice for kept in log.decisions] == [Choice.REJECT]
    assert log.restore(one) == DecisionLog()


def test_a_written_decision_is_not_open() -> None:
    """It cannot be taken back; jobs that are pending again are undecided."""
    one = group()
    log = DecisionLog().add(decision(one))
    written = log.mark_written(log.decisions, {"a": "b"})
    assert (written.progress(one), written.find_open([one])) == (Progress.OPEN, ())
    assert written.restore(one) == written
    assert written.mark_written((), {"b": "c"}).same == {"a": "c", "b": "c"}


@pytest.mark.parametrize("text", [b"{", b"[]", b'{"format": 9}', b"\xff"])
def test_a_malformed_log_is_an_error(text: bytes) -> None:
    """The message names the file."""
    with pytest.raises(UsageError, match=r"review\.json: .*delete it"):
        DecisionLog.loads(text, "run/review.json")
