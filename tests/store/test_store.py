"""The store, in a file and in PostgreSQL."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from conformance.engine.runs.regression_tracker import RegressionStatus
from conformance.errors import UsageError
from conformance.locking import QUIET
from conformance.report.history import make_history
from conformance.store.run_insertion import StoreEntry
from tests.store.conftest import open_store
from tests.store.nights import BAD, FINE, GONE, START, WORSE, A, B, night, one, shown

if TYPE_CHECKING:
    from conformance.engine.runs.digests import Digest, JobState
    from conformance.store.store import Store
    from tests.store.conftest import NewStore


JOBS = st.tuples(st.sampled_from(["f/a", "f/b", "g/ü[x=1]"]), st.sampled_from([A, B]))
STATES = st.sampled_from([FINE, BAD, WORSE, GONE])
NIGHTS = st.lists(st.dictionaries(JOBS, STATES, min_size=1), min_size=1, max_size=8)


def standings(store: Store) -> dict[str, str]:
    """Return where the regressions stand, by case."""
    return {one.case: str(one.status) for one in store.load_regressions()[0]}


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(nights=NIGHTS, cut=st.integers(0, 8))
def test_added_runs_are_loaded_unchanged(
    new_store: NewStore, nights: list[dict[tuple[str, str], JobState]], cut: int
) -> None:
    """States and regressions, as computed from the runs; also after pruning."""
    store = new_store()
    entries = [night(number, jobs) for number, jobs in enumerate(nights, 1)]
    assert store.add(*entries) == list(range(1, len(nights) + 1))
    for number, entry in enumerate(entries, 1):
        assert store.load_states(number) == shown(entry)
    _as_they_were(store.load_digests(), entries)
    _as_reported(store, entries)
    store.prune(START + timedelta(days=cut))
    kept = {run.number for run in store.load_runs()}
    assert kept == {n for n in range(1, len(nights) + 1) if n >= min(cut, len(nights))}
    for number in kept:
        assert store.load_states(number) == shown(entries[number - 1])
    _as_they_were(store.load_digests(), [entries[number - 1] for number in sorted(kept)])


def _as_they_were(digests: list[Digest], entries: list[StoreEntry]) -> None:
    """Digests are those of the runs, but for the order of their states."""
    for found, entry in zip(digests, entries, strict=True):
        assert shown(StoreEntry(digest=found)) == shown(entry)
        alike = {"states": (), "grid": b""}
        assert structs.replace(found, **alike) == structs.replace(entry.digest, **alike)


def _as_reported(store: Store, entries: list[StoreEntry]) -> None:
    told = make_history(entry.digest for entry in entries)
    regressions, events = store.load_regressions()
    moves = [e for e in events if e.kind is not RegressionStatus.CONFIRMED]
    assert {replace(r, first=r.first - 1, last=r.last - 1,
                    fixed_in=None if r.fixed_in is None else r.fixed_in - 1)
            for r in regressions} == {*told.regressions}  # fmt: skip
    assert [replace(event, run=event.run - 1) for event in moves] == list(told.events)


def test_run_is_added_once(store: Store) -> None:
    """A second call changes nothing; a resumed run is another run."""
    first = night(1, one(BAD))
    assert store.add(first) == [1]
    before = store.load_runs()
    assert store.add(first, first) == [None, None]
    assert store.load_runs() == before
    assert standings(store) == {"f/a": "new"}


def test_runs_are_in_the_order_of_adding(store: Store) -> None:
    """The clock may be set back."""
    store.add(night(1, one(FINE)), night(2, one(BAD), started=START - timedelta(days=99)))
    assert [run.name for run in store.load_runs()] == ["night-1", "night-2"]
    (found,) = store.load_regressions()[0]
    assert (found.first, found.status) == (2, "new")


def test_run_has_counts_cells_and_host(store: Store) -> None:
    """Its verdicts, its cells with their releases, its host."""
    nightly = "jax0.13.0.dev20260502-py312-cpu8"
    jobs = {("f/a", A): FINE, ("f/b", A): BAD, ("f/a", nightly): BAD}
    store.add(night(1, jobs, releases={nightly: "0.13.0.dev20260502"}))
    (run,) = store.load_runs()
    assert (run.number, run.exit, run.matrix, run.unexpected) == (1, 0, "nightly", 2)
    assert run.counts == {"match": 1, "regressed": 2}
    assert run.cells == {A: (A, "0.5.3"), "nightly-cpu8": (nightly, "0.13.0.dev20260502")}
    assert (run.host, run.versions) == ({"cpus": 2}, {})


def test_nightly_cell_is_the_same_place_every_day(store: Store) -> None:
    """Though the id of the cell contains the date."""
    days = [f"jax0.13.0.dev2026050{day}-py312-cpu8" for day in (1, 2, 3)]
    store.add(*(night(n, one(BAD, cell=cell)) for n, cell in enumerate(days, 1)))
    (spans,) = store.load_spans("f/a").values()
    assert [(s.state, s.first, s.last, s.runs) for s in spans] == [(BAD, 1, 3, 3)]
    assert standings(store) == {"f/a": "confirmed"}


def test_spans_of_a_case_by_place(store: Store) -> None:
    """Runs without the case included."""
    store.add(
        night(1, {("f/a", A): FINE, ("f/a", B): FINE}),
        night(2, {("f/a", A): FINE, ("f/a", B): BAD}),
        night(3, {("f/a", A): BAD, ("f/b", A): FINE}),
        night(4, {("f/a", A): FINE, ("f/a", B): BAD}),
    )
    found = {
        place: [(span.state, span.first, span.last, span.runs) for span in spans]
        for place, spans in store.load_spans("f/a").items()
    }
    assert found == {
        A: [(FINE, 1, 2, 2), (BAD, 3, 3, 1), (FINE, 4, 4, 1)],
        B: [(FINE, 1, 1, 1), (BAD, 2, 2, 1), (None, 3, 3, 1), (BAD, 4, 4, 1)],
    }
    assert store.load_spans("f/none") == {}


def test_regression_is_opened_confirmed_linked_fixed_and_reopen_store(store: Store) -> None:
    """And linked to another issue."""
    seen = []
    for number, shows in enumerate((BAD, GONE, BAD), 1):
        store.add(night(number, one(shows)))
        seen.append(standings(store)["f/a"])
    assert seen == ["new", "new", "confirmed"]
    (found,) = store.load_regressions()[0]
    assert store.link(found.id[:5], "jax-ml/jax#1").status is RegressionStatus.KNOWN
    store.add(night(4, one(FINE)))
    assert standings(store) == {"f/a": "fixed"}
    store.add(night(5, one(BAD)))
    (found,) = store.load_regressions()[0]
    assert (found.status, found.issue, found.reopened) == ("reopened", "jax-ml/jax#1", 1)
    assert store.link(found.id, "jax-ml/jax#2").issue == "jax-ml/jax#2"
    assert standings(store) == {"f/a": "known"}
    assert store.link(found.id, "").status is RegressionStatus.REOPENED
    kinds = [(event.kind, event.run) for event in store.load_regressions()[1]]
    assert kinds == [("new", 1), ("confirmed", 3), ("fixed", 4), ("reopened", 5)]


def test_repeated_job_confirms_a_regression_at_once(store: Store) -> None:
    """Within one run."""
    jobs = {("f/a", A): BAD, ("f/b", A): BAD}
    store.add(night(1, jobs, repeated=[("f/a", A)]))
    assert standings(store) == {"f/a": "confirmed", "f/b": "new"}
    assert [event.kind for event in store.load_regressions()[1]] == ["new", "new", "confirmed"]


def test_several_regressions_are_linked_at_once(store: Store) -> None:
    """In place of earlier links; the links of others stay."""
    store.add(night(1, {("f/a", A): BAD, ("f/b", A): BAD, ("f/c", A): BAD}))
    first, second, third = (one.id for one in store.load_regressions()[0])
    store.link(first, "o/r#1")
    store.link(third, "o/r#3")
    store.link_all([first, second], "o/r#2")
    found = {one.id: one.issue for one in store.load_regressions()[0]}
    assert found == {first: "o/r#2", second: "o/r#2", third: "o/r#3"}
    with pytest.raises(UsageError, match="expected owner/repository#number"):
        store.link_all([first], "#2")


def test_invalid_link_is_a_usage_error(store: Store) -> None:
    """No issue, no regression, or several regressions."""
    store.add(night(1, {("f/a", A): BAD, ("f/b", A): BAD}))
    with pytest.raises(UsageError, match="expected owner/repository#number"):
        store.link("0", "https://example.org")
    with pytest.raises(UsageError, match="matches 0 regressions"):
        store.link("xyz", "o/r#1")
    with pytest.raises(UsageError, match="'' matches 2 regressions"):
        store.link("", "o/r#1")


def test_prune_removes_old_runs_and_their_jobs(store: Store) -> None:
    """The states before the first remaining run stay."""
    store.add(
        night(1, {("f/a", A): BAD, ("f/b", A): BAD}), night(2, {("f/a", A): BAD}),
        night(3, {("f/a", A): BAD}), night(4, {("f/a", A): FINE}),
    )  # fmt: skip
    pruned = store.prune(START + timedelta(days=3))
    assert (pruned.runs, pruned.jobs, pruned.changes) == (2, 1, 1)
    (found,) = store.load_regressions()[0]
    assert (found.case, found.status, found.first, found.fixed_in) == ("f/a", "fixed", 1, 4)
    assert [(event.kind, event.run) for event in store.load_regressions()[1]] == [("fixed", 4)]
    assert store.add(night(5, one(BAD))) == [5]


def test_the_newest_run_is_never_pruned(store: Store) -> None:
    """However old it is; an empty store is unchanged."""
    assert store.prune(START).runs == 0
    store.add(night(1, one(FINE)), night(2, one(BAD)))
    assert store.prune(START + timedelta(days=999)).runs == 1
    assert [run.number for run in store.load_runs()] == [2]
    assert store.load_states(1) == {}


def test_unstorable_characters_are_replaced(store: Store) -> None:
    """NUL and surrogates; all others stay."""
    odd = type(BAD)(BAD.verdict, BAD.outcome, BAD.conformance, "a\0b\ud800 ü𝄞", "a\0b")
    store.add(night(1, one(odd)))
    (found,) = store.load_states(1).values()
    assert (found.reason, found.cause) == ("a�b� ü𝄞", "a�b")
    store.add(night(2, one(odd)))
    assert standings(store) == {"f/a": "confirmed"}


def test_action_lock_is_exclusive(where: str) -> None:
    """Others read and write the store meanwhile; a long wait is reported."""
    first, second = open_store(where), open_store(where)
    order: list[str] = []
    notes: list[str] = []

    def act() -> None:
        with second.lock_actions(notes.append):
            order.append("second")

    with first.lock_actions(notes.append):
        thread = threading.Thread(target=act)
        thread.start()
        first.add(night(1, one(FINE)))
        assert [run.name for run in second.load_runs()] == [run.name for run in first.load_runs()]
        time.sleep(QUIET + 0.3)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert len(notes) == 1
    assert "waiting for another process that" in notes[0]
