"""The last night of a matrix, as a store has it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from conformance.engine.runs.nights import compare_nights
from conformance.model.run_files import JobAt
from conformance.store.nights import load_known_regressions, load_last_night
from tests.store.nights import BAD, FINE, GONE, WORSE, A, night

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conformance.engine.runs.digests import JobState
    from conformance.store.run_insertion import StoreEntry
    from conformance.store.store import Store


def of(entry: StoreEntry, matrix: str, part: str = "") -> StoreEntry:
    """Return a run as one of another matrix."""
    return replace(entry, digest=structs.replace(entry.digest, matrix=matrix, part=part))


def jobs(**states: JobState) -> Mapping[tuple[str, str], JobState]:
    """Return jobs by the name of their case."""
    return {(f"f/{name}", A): state for name, state in states.items()}


def test_last_night_is_the_newest_run_of_the_matrix(store: Store) -> None:
    """Not of another matrix or a part of it, nor the run itself, unless it is named."""
    store.add(
        night(1, jobs(a=FINE)),
        night(2, jobs(a=BAD)),
        of(night(3, jobs(a=FINE)), "smoke"),
        of(night(4, jobs(a=FINE)), "nightly", "f/a"),
        night(5, jobs(a=FINE)),
    )

    def name(**more: str) -> str:
        found = load_last_night(store, "nightly", "", own="night-5", **more)
        return "" if found is None else found.run

    assert name() == "night-2"
    assert name(name="night-3") == "night-3"
    assert name(name="night-9") == ""
    assert load_last_night(store, "releases", "") is None


def test_causes_begin_with_their_first_stored_run(store: Store) -> None:
    """A comparison is the same as with the night of a run directory."""
    store.add(
        night(1, jobs(a=FINE, b=FINE)),
        night(2, jobs(a=BAD, b=FINE)),
        night(3, jobs(a=BAD, b=WORSE)),
        of(night(4, jobs(c=BAD)), "smoke"),
    )
    before = load_last_night(store, "nightly", "")
    assert before is not None
    (a,) = (one for one in before.causes.values() if one.jobs[0].case == "f/a")
    assert (a.run, a.since[:10], a.nights) == ("night-2", "2026-05-03", 2)
    assert {one.jobs[0].case for one in before.causes.values()} == {"f/a", "f/b"}
    since = compare_nights(before, before)
    assert (since.has_changes, len(since.still)) == (False, 2)


def test_silent_regression_stays_open(store: Store) -> None:
    """Its job had no result the last night; showing it again is not news."""
    store.add(night(1, jobs(a=BAD)), night(2, jobs(a=GONE)))
    before = load_last_night(store, "nightly", "")
    assert before is not None
    (one,) = before.causes.values()
    assert one.jobs == (JobAt(case="f/a", place=A),)
    assert not before.jobs[one.jobs[0]].is_conclusive


def test_linked_regressions_are_known(store: Store) -> None:
    """Until they are fixed."""
    store.add(night(1, jobs(a=BAD, b=WORSE)))
    (linked,) = (one for one in store.load_regressions()[0] if one.case == "f/a")
    assert load_known_regressions(store) == set()
    store.link(linked.id, "jax-ml/jax#1")
    assert load_known_regressions(store) == {("f/a", "regressed", "out[0] differs")}
    store.add(night(2, jobs(a=FINE, b=WORSE)), night(3, jobs(a=BAD, b=WORSE)))
    assert load_known_regressions(store) == set()
