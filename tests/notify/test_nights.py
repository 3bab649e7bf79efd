"""Nights told one after another: what is opened, updated, closed, and what people decided."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conformance.engine.runs.digests import make_digest
from conformance.engine.runs.regression_tracker import RegressionStatus
from conformance.errors import InfrastructureError, UsageError
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.run_files import EVIDENCE, Evidence
from conformance.notify.actions import ActionKind
from conformance.notify.decisions import NotifyWhen
from conformance.notify.issue_body import find_cause
from conformance.notify.night import read_night
from conformance.notify.tracker import CloseReason, RefusedError
from tests.engine.written_runs import A, B, record
from tests.notify.desk import Nights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conformance.model.record import Record

ONE, TWO = "out[0] differs in 12 elements", "fact donation: 1 gone"


MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where stores are made that need not survive: they wait for the disk at each write."""


@pytest.fixture
def nights() -> Iterator[Nights]:
    """A store and a desk without anything."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        yield Nights(Path(folder))


def bad(case: str = "f/a", cell: str = A, reason: str = ONE, **more: Any) -> Record:
    """Return a job that is unexpected, and was repeated."""
    fields = {"verdict": Verdict.REGRESSED, "attempts": 3, **more}
    return record(case, cell, reasons=(reason,), **fields)


def fine(case: str = "f/a", cell: str = A) -> Record:
    """Return a job that is as expected."""
    return record(case, cell)


def test_an_issue_is_opened_updated_and_closed(nights: Nights) -> None:
    """By root cause, with a comment only where more shows it; and the store knows it."""
    assert nights.night(fine(), fine("g/b"), fine(cell=B)) == []
    assert nights.night(bad(), fine("g/b"), fine(cell=B)) == ["open"]
    assert nights.desk.titles[1] == f"f/a regressed: {ONE}"
    body = nights.desk.kept[1].body
    assert "first seen in `night-2`. Last good before it: `night-1`." in body
    assert "conformance run f/a --cell jax0.5.3-py311-cpu8" in body
    (regression,) = nights.regressions
    assert (regression.status, regression.issue) == (RegressionStatus.KNOWN, "owner/repo#1")
    assert nights.night(bad(), fine("g/b"), fine(cell=B)) == []
    assert nights.night(bad(), fine("g/b"), bad(cell=B)) == ["update"]
    assert f"`{B}`" in nights.desk.kept[1].body
    assert nights.desk.comments[1] == []
    assert nights.night(fine(), fine("g/b"), bad(cell=B)) == ["update"]
    assert nights.night(fine(), fine("g/b"), fine(cell=B)) == ["close"]
    assert nights.desk.kept[1].closed is CloseReason.COMPLETED
    (comment,) = nights.desk.comments[1]
    assert comment.startswith("Fixed: all 2 jobs that showed it ran up to `night-6`")
    assert nights.night(fine(), fine("g/b"), fine(cell=B)) == []


def test_a_regression_seen_once_opens_no_issue(nights: Nights) -> None:
    """Until another run shows it; or it is told at once where that is wanted."""
    assert nights.night(bad(attempts=1)) == []
    assert "another run must show it" in nights.decided()[0].why
    nights.policy = replace(nights.policy, when=NotifyWhen.NEW)
    assert [one.kind for one in nights.decided()] == [ActionKind.OPEN]
    nights.policy = replace(nights.policy, when=NotifyWhen.CONFIRMED)
    assert nights.night(bad(attempts=1)) == ["open"]


@pytest.mark.parametrize(
    "silent",
    [
        bad(verdict=Verdict.FLAKY),
        bad(verdict=Verdict.INFRA, outcome=Outcome.INFRA),
        bad(verdict=Verdict.NEW, conformance=Conformance.UNKNOWN),
    ],
    ids=lambda one: str(one.verdict),
)
def test_flaky_infra_and_unreviewed_jobs_open_no_issue(nights: Nights, silent: Record) -> None:
    """Flaky, a fault of the host, and what only has no golden yet."""
    nights.night(silent)
    assert nights.night(silent) == []
    assert nights.decided() == []


def test_a_root_cause_has_one_issue(nights: Nights) -> None:
    """The same fact in several cases; another case that comes to show it is told in a comment."""
    jobs = [bad(case, reason=TWO) for case in ("f/a", "f/b", "g/c")]
    assert nights.night(*jobs[:2], fine("g/c")) == ["open"]
    assert nights.desk.titles[1] == f"regressed: {TWO}"
    assert nights.night(*jobs) == ["update"]
    assert nights.desk.comments[1] == [f"Also seen since `night-2`:\n\n- `g/c` on `{A}`"]
    assert {one.issue for one in nights.regressions} == {"owner/repo#1"}
    assert nights.night(fine("f/a"), *jobs[1:]) == ["update"]
    assert nights.night(*[fine(one.case) for one in jobs]) == ["close"]


def test_an_issue_is_closed_when_all_of_its_jobs_ran(nights: Nights) -> None:
    """A night that runs one of them says nothing about the other; nor does a fault of the host."""
    nights.night(bad(), bad(cell=B))
    assert nights.night(fine()) == []
    assert "not all of its jobs have run" in nights.decided()[0].why
    infra = bad(cell=B, verdict=Verdict.INFRA, outcome=Outcome.INFRA)
    assert nights.night(fine(), infra) == []
    assert nights.night(fine(cell=B)) == ["close"]


def test_an_issue_stays_open_while_its_jobs_show_another_cause(nights: Nights) -> None:
    """That is another root cause, with an issue of its own."""
    nights.night(bad())
    crash = bad(reason="SIGSEGV", verdict=Verdict.CRASHED)
    assert nights.night(crash) == ["open"]
    assert "they show something else" in nights.decided()[1].why
    assert nights.desk.is_open(1)
    assert nights.night(fine()) == ["close", "close"]


def test_an_issue_closed_as_completed_is_reopened(nights: Nights) -> None:
    """It is opened again by the next night, not by the same one told again."""
    nights.night(bad())
    nights.desk.change(1, closed=CloseReason.COMPLETED, closed_at=nights.people())
    assert [done.action.kind for done in nights.notify()] == [ActionKind.NOTHING]
    assert nights.night(bad()) == ["reopen"]
    assert nights.desk.is_open(1)
    assert nights.desk.comments[1][0].startswith("This was closed as completed, and is seen in")


def test_a_regression_that_returns_reopens_its_issue(nights: Nights) -> None:
    """The same issue, with its comments; and the store knows it again."""
    nights.night(bad())
    nights.night(fine())
    assert nights.night(bad()) == ["reopen"]
    assert nights.regressions[0].status is RegressionStatus.KNOWN
    assert "Open: first seen in `night-1`" in nights.desk.kept[1].body
    assert nights.night(bad()) == []
    assert nights.night(fine()) == ["close"]
    assert len(nights.desk.kept) == 1


def test_an_issue_closed_as_not_planned_stays_closed(nights: Nights) -> None:
    """Whatever the nights show."""
    nights.night(bad())
    nights.desk.change(1, closed=CloseReason.DECLINED, closed_at=nights.people())
    for job in (bad(), fine(), bad(), bad()):
        nights.night(job)
        assert not nights.desk.is_open(1)
    assert (len(nights.desk.kept), nights.desk.comments[1]) == (1, [])
    assert "people closed it as not planned" in nights.decided()[0].why


def test_further_regressions_of_a_declined_issue_are_only_linked(nights: Nights) -> None:
    """Another case with the same cause is linked to the issue, which stays as it is."""
    nights.night(bad(reason=TWO))
    nights.desk.change(1, closed=CloseReason.DECLINED, closed_at=nights.people())
    issue = nights.desk.kept[1]
    assert nights.night(bad(reason=TWO), bad("g/b", reason=TWO)) == ["update"]
    assert {one.status for one in nights.regressions} == {RegressionStatus.KNOWN}
    assert (nights.desk.kept, nights.desk.comments) == ({1: issue}, {1: []})


def test_an_issue_reopened_by_people_stays_open(nights: Nights) -> None:
    """They do not believe that it is fixed; the next time it comes and goes it is closed."""
    nights.night(bad())
    nights.night(fine())
    nights.desk.change(1, closed=None, closed_at=None)
    assert nights.night(fine()) == []
    assert nights.night(bad()) == ["update"]
    assert nights.night(fine()) == ["close"]


def test_text_of_people_is_never_changed(nights: Nights) -> None:
    """Title, text around ours; where they took our marks away nothing is written any more."""
    nights.night(bad())
    nights.desk.titles[1] = "theirs"
    ours = nights.desk.kept[1].body
    nights.desk.change(1, body=f"before\r\n\r\n{ours}\r\nafter")
    assert nights.night(bad(), bad(cell=B)) == ["update"]
    text = nights.desk.kept[1].body
    assert text.startswith("before\n\n<!-- conformance: ")
    assert text.endswith("<!-- conformance-end -->\nafter")
    assert nights.desk.titles[1] == "theirs"
    nights.desk.change(1, body=text.replace("<!-- conformance-end -->", ""))
    assert nights.night(bad()) == []
    assert nights.night(fine(), fine(cell=B)) == []
    nights.desk.change(1, body="all of it is mine")
    assert nights.night(bad()) == []


def test_a_regression_with_an_issue_elsewhere_asks_for_no_other(nights: Nights) -> None:
    """Upstream's, linked by hand."""
    nights.add(bad())
    nights.store.link(nights.regressions[0].id, "jax-ml/jax#12345")
    assert [done.action.why for done in nights.notify()] == ["known: jax-ml/jax#12345"]
    assert nights.desk.kept == {}


def test_a_night_opens_at_most_the_limit_of_issues(nights: Nights) -> None:
    """The largest root causes; the others wait, and are named."""
    jobs = [bad(f"f/case{n}", reason=f"{ONE} of {'x' * n}") for n in range(5)]
    jobs.append(bad("f/case3", B, reason=f"{ONE} of xxx"))
    nights.policy = replace(nights.policy, limit=2)
    nights.add(*jobs)
    done = nights.notify()
    assert [one.action.kind for one in done] == [ActionKind.OPEN] * 2 + [ActionKind.HOLD] * 3
    assert nights.desk.titles[1].startswith("f/case3")
    assert done[2].action.title.startswith("f/case")
    nights.notify()
    nights.notify()
    assert len(nights.desk.kept) == 5


def test_a_store_that_was_lost_opens_nothing_twice(nights: Nights) -> None:
    """The issues say what they are about: they are linked again, without a comment."""
    nights.night(bad("f/a", reason=TWO), bad("f/b", reason=TWO))
    other = Nights(nights.folder / "other", desk=nights.desk)
    other.add(bad("f/a", reason=TWO), bad("f/b", reason=TWO))
    other.notify()
    assert len(other.desk.kept) == 1
    assert other.desk.comments[1] == []
    assert {one.issue for one in other.regressions} == {"owner/repo#1"}


def test_two_issues_of_one_cause(nights: Nights) -> None:
    """The older open one is the one that is kept."""
    nights.night(bad())
    issue = nights.desk.kept[1]
    nights.desk.kept = {n: replace(issue, number=n) for n in (1, 2, 3)}
    nights.desk.comments = {1: [], 2: [], 3: []}
    nights.desk.change(1, closed=CloseReason.COMPLETED, closed_at=nights.desk.now)
    nights.night(bad(), bad(cell=B))
    written = [n for n, one in nights.desk.kept.items() if f"`{B}`" in one.body]
    assert written == [2]


def test_a_cause_that_is_known_by_another_id_keeps_its_issue(nights: Nights) -> None:
    """What was linked says which it is; what else shows it is told there."""
    nights.night(bad(reason=TWO))
    body = nights.desk.kept[1].body
    other = body.replace(find_cause(body), "0" * 12)
    nights.desk.change(1, body=other)
    assert nights.night(bad(reason=TWO)) == []
    assert nights.night(bad(reason=TWO), bad("g/b", reason=TWO)) == ["update"]
    assert find_cause(nights.desk.kept[1].body) == "0" * 12
    assert nights.desk.comments[1] == [f"Also seen since `night-3`:\n\n- `g/b` on `{A}`"]
    assert nights.night(fine(), fine("g/b")) == ["close"]


def test_evidence_is_in_the_issue(nights: Nights) -> None:
    """With its reproduction; what points out of the run is not read."""
    nights.add(bad())
    cause = nights.decided()[0].cause
    (nights.newest.path / "repro").mkdir()
    (nights.newest.path / "repro" / "a.py").write_text("print('seen')\n")
    (nights.folder / "secret").write_text("password")
    for path, shown in (("repro/a.py", True), ("../secret", False), ("repro/none.py", False)):
        found = Evidence(cause=cause, case="f/a", cell=A, first_bad="0.5.3", repro=path)
        (nights.newest.path / EVIDENCE).write_bytes(msgspec.json.encode([found]))
        body = nights.decided()[0].body
        assert "first bad `0.5.3`" in body
        assert ("print('seen')" in body) is shown
        assert "password" not in body
    (nights.newest.path / EVIDENCE).write_text("[{")
    with pytest.raises(Exception, match=r"evidence\.json: expected .*; conformance triage .*again"):
        nights.decided()


def test_a_run_missing_from_the_store_is_refused(nights: Nights) -> None:
    """Is added first."""
    nights.add(bad())
    other = Nights(nights.folder / "other")
    with pytest.raises(UsageError, match=r"is not in the store.*conformance history add .*night-1"):
        read_night(nights.newest, make_digest(nights.newest), other.store, [])


def test_an_older_run_opens_no_issue_for_a_fixed_regression(nights: Nights) -> None:
    """Told late, it opens nothing."""
    nights.add(bad())
    older = nights.newest
    nights.add(fine())
    nights.newest = older
    assert nights.decided() == []


def test_opened_issues_are_linked_if_the_network_fails(nights: Nights) -> None:
    """In the middle: the next run goes on where it ended."""
    jobs = [bad(f"f/case{n}", reason=f"{ONE} of {'x' * n}") for n in range(4)]
    nights.add(*jobs)
    left = iter([1, 1])

    def fail() -> None:
        if not next(left, 0):
            raise InfrastructureError("github: it is gone")

    nights.desk.before_write = fail
    with pytest.raises(InfrastructureError):
        nights.notify()
    linked = [one for one in nights.regressions if one.issue]
    assert sorted(one.issue for one in linked) == ["owner/repo#1", "owner/repo#2"]
    nights.desk.before_write = lambda: None
    assert [one.action.kind for one in nights.notify() if one.action.acts] == [ActionKind.OPEN] * 2
    assert len(nights.desk.kept) == 4


def test_one_issue_that_is_refused_leaves_the_others(nights: Nights) -> None:
    """It is told, with its problem."""
    nights.add(*[bad(f"f/case{n}", reason=f"{ONE} of {'x' * n}") for n in range(2)])
    left = iter([RefusedError("too long")])

    def refuse() -> None:
        for error in left:
            raise error

    nights.desk.before_write = refuse
    assert [one.problem for one in nights.notify()] == ["too long", ""]
    assert len(nights.desk.kept) == 1


SHOWN: Final[dict[str, dict[str, Any]]] = {
    "one": {},
    "two": {"reason": TWO},
    "once": {"attempts": 1},
    "crash": {"reason": "SIGSEGV", "verdict": Verdict.CRASHED},
    "flaky": {"verdict": Verdict.FLAKY},
    "infra": {"verdict": Verdict.INFRA, "outcome": Outcome.INFRA},
}
KINDS: Final = ("fine", "absent", *SHOWN)
JOBS: Final = [("f/a[1]", A), ("f/a[2]", A), ("f/a[1]", B), ("g/b", A), ("g/b", B)]
job_kinds = st.tuples(*(st.sampled_from(KINDS) for _ in JOBS))
people = st.sampled_from(["", "", "complete", "decline", "reopen", "write"])


def made(kind: str, case: str, cell: str) -> Record:
    """Return a job of a kind."""
    return fine(case, cell) if kind == "fine" else bad(case, cell, **SHOWN[kind])


# Each example is a store of its own: made smaller it would take minutes.
@settings(max_examples=25, deadline=None, phases=[Phase.reuse, Phase.generate])
@given(st.lists(st.tuples(job_kinds, people, st.integers(1, 4)), min_size=1, max_size=6))
def test_laws_of_nights(said: list[tuple[tuple[str, ...], str, int]]) -> None:
    """Told twice a night does nothing more; what is closed is fine; people have the last word."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        nights = Nights(Path(folder))
        last: dict[tuple[str, str], str] = {}
        declined: set[int] = set()
        for kinds, does, which in said:
            shown = {job: kind for job, kind in zip(JOBS, kinds, strict=True) if kind != "absent"}
            if not shown:
                continue
            last.update((job, kind) for job, kind in shown.items() if kind != "infra")
            was_open = {number for number in nights.desk.kept if nights.desk.is_open(number)}
            nights.add(*(made(kind, *job) for job, kind in shown.items()))
            done = nights.notify()
            writes = nights.desk.writes
            assert not any(one.action.acts for one in nights.notify())
            assert nights.desk.writes == writes
            causes = [find_cause(issue.body) for issue in nights.desk.kept.values()]
            assert len(set(causes)) == len(causes)
            for number in was_open - {n for n in nights.desk.kept if nights.desk.is_open(n)}:
                mine = [r for r in nights.regressions if r.issue == f"owner/repo#{number}"]
                assert {last[r.case, place] for r in mine for place in r.places} == {"fine"}
            for one in nights.regressions:
                if (
                    one.status is RegressionStatus.CONFIRMED
                    and one.state.verdict is not Verdict.FLAKY
                ):
                    ran = {job for job in shown if last[job] not in {"fine", "flaky"}}
                    assert not any((one.case, place) in ran for place in one.open_places), done
            assert not any(nights.desk.is_open(number) for number in declined)
            act(nights, does, which, declined)


def act(nights: Nights, does: str, which: int, declined: set[int]) -> None:
    """Do what people do to an issue."""
    if which not in nights.desk.kept or which in declined:
        return
    closed = {"complete": CloseReason.COMPLETED, "decline": CloseReason.DECLINED, "reopen": None}
    if does == "write":
        nights.desk.change(which, body=f"theirs\r\n{nights.desk.kept[which].body}")
    elif does in closed:
        at = nights.people() if closed[does] else None
        nights.desk.change(which, closed=closed[does], closed_at=at)
    if does == "decline":
        declined.add(which)
