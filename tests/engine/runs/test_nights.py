"""Comparison of two nights: laws, and the kinds of changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.runs.nights import Night, compare_nights, make_night
from conformance.model.outcome import Conformance, Outcome, Verdict
from conformance.model.record import IrRecord
from conformance.model.run import RunCell, RunInfo
from conformance.model.run_files import ArtifactChange, JobAt, PackageChange
from tests.engine.records import record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from conformance.model.record import Record
    from conformance.model.run_files import CauseSince, Since

HERE: Final = "jax0.12.0-py312-cpu8"
DAYS: Final = ("jax0.13.0.dev20260501-py312-cpu8", "jax0.13.0.dev20260502-py313-cpu8")
UNTOLD: Final = "jaxnightly-py312-cpu8"
PLACE: Final = "nightly-cpu8"


def bad(
    case: str = "f/a", cell: str = HERE, reason: str = "out 1 against 2", **more: Any
) -> Record:
    """Return a job that is unexpected."""
    return record(case, cell, Verdict.REGRESSED, reason, **more)


def fine(case: str = "f/a", cell: str = HERE, **more: Any) -> Record:
    """Return a job that is as it should be."""
    return replace(record(case, cell, Verdict.MATCH, **more), case_hash="c")


def silent(case: str = "f/a", cell: str = HERE) -> Record:
    """Return a job that was not observed."""
    said = record(case, cell, Verdict.INFRA, "no network")
    return replace(said, outcome=Outcome.INFRA, conformance=Conformance.UNKNOWN)


def night(
    day: int, *records: Record, since: Since | None = None, jax: Mapping[str, str] | None = None
) -> Night:
    """Return the night of a day of May."""
    cells = dict.fromkeys(one.cell for one in records)
    info = RunInfo(
        started=f"2026-05-{day:02}T03:00:00+00:00",
        cells=tuple(
            RunCell(
                id=cell,
                lock="" if cell == UNTOLD else "l",
                versions={"jax": (jax or {}).get(cell, cell)},
            )
            for cell in cells
        ),
    )
    return make_night(f"run-{day}", info, records, since)


def cases_of(causes: Iterable[CauseSince]) -> list[str]:
    """Return the cases of root causes."""
    return [job.case for one in causes for job in one.jobs]


def nights_on(*nights: Sequence[Record]) -> Since:
    """Return the changes of the last of several nights, each compared with its predecessor."""
    since = None
    for day, records in enumerate(nights, 1):
        after = night(day, *records)
        if day > 1:
            since = compare_nights(night(day - 1, *nights[day - 2], since=since), after)
    assert since is not None
    return since


CASES = st.sampled_from(["f/a", "f/b", "f/b[x=1]", "g/a"])
REASONS = st.sampled_from(
    ["out 1 against 2", "out 3 against 4", "dtype f4 against f8", "fact x: y"]
)
KINDS = st.one_of(
    st.builds(lambda case, reason: bad(case, reason=reason), CASES, REASONS),
    st.builds(fine, CASES),
    st.builds(
        lambda case, blob: fine(case, artifacts={"value": blob}), CASES, st.sampled_from("ab")
    ),
)
LOUD = st.lists(KINDS, max_size=6, unique_by=lambda one: one.case)
ANY = st.lists(
    st.one_of(KINDS, st.builds(silent, CASES)), max_size=6, unique_by=lambda one: one.case
)


@given(ANY)
def test_a_night_against_itself_has_nothing_new(records: list[Record]) -> None:
    """Every cause persists."""
    since = compare_nights(night(1, *records), night(2, *records))
    assert not since.has_changes
    assert len(since.still) == len(night(1, *records).causes)


@given(LOUD, LOUD)
def test_new_and_gone_are_mirror_images(one: list[Record], other: list[Record]) -> None:
    """So are added and removed jobs, and changed artifacts are the same both ways."""
    there, back = (
        compare_nights(night(1, *one), night(2, *other)),
        compare_nights(night(2, *other), night(1, *one)),
    )
    assert {cause.id for cause in there.new} == {cause.id for cause in back.gone}
    assert {cause.id for cause in there.gone} == {cause.id for cause in back.new}
    assert (set(there.added), set(there.removed)) == (set(back.removed), set(back.added))
    assert {(m.artifact, m.place, *sorted(m.cases)) for m in there.artifacts} == {
        (m.artifact, m.place, *sorted(m.cases)) for m in back.artifacts
    }


@given(ANY, ANY)
def test_every_cause_is_listed_once(one: list[Record], other: list[Record]) -> None:
    """As new or persisting; earlier causes as persisting, gone or unseen."""
    before, after = night(1, *one), night(2, *other)
    since = compare_nights(before, after)
    assert sorted([c.id for c in (*since.new, *since.still)]) == sorted(after.causes)
    assert {c.id for c in (*since.gone, *since.unseen)} <= before.causes.keys()


def test_a_cause_is_as_old_as_its_first_night() -> None:
    """Through all nights that are compared one after another."""
    since = nights_on([fine()], [bad()], [bad()], [bad()])
    (one,) = since.still
    assert (one.run, one.since[:10], one.nights) == ("run-2", "2026-05-02", 3)
    assert not since.has_changes


def test_an_unobserved_night_ends_no_cause() -> None:
    """The cause returns with its age."""
    since = nights_on([fine()], [bad()], [silent()])
    assert (since.silent, since.has_changes) == ((JobAt(case="f/a", place=HERE),), True)
    assert (cases_of(since.unseen), since.gone, since.new) == (["f/a"], (), ())
    since = nights_on([fine()], [bad()], [silent()], [silent()], [bad()])
    (one,) = since.still
    assert (one.since[:10], one.nights, since.new) == ("2026-05-02", 2, ())
    since = nights_on([fine()], [bad()], [silent()], [fine()])
    assert (cases_of(since.gone), since.unseen) == (["f/a"], ())


def test_a_removed_job_ends_its_cause() -> None:
    """It is listed as removed, too."""
    since = nights_on([bad(), fine("f/b")], [fine("f/b")])
    assert cases_of(since.gone) == ["f/a"]
    assert since.removed == (JobAt(case="f/a", place=HERE),)


def test_another_reason_is_another_cause() -> None:
    """Except for numbers, which differ every night."""
    since = nights_on([bad(reason="out 1 against 2")], [bad(reason="out 5 against 2")])
    assert (since.new, len(since.still)) == ((), 1)
    since = nights_on([bad(reason="out 1 against 2")], [bad(reason="dtype f4 against f8")])
    assert (len(since.new), len(since.gone), since.still) == (1, 1, ())


@pytest.mark.parametrize("cell", [DAYS[1], UNTOLD])
def test_nightlies_are_compared_by_place(cell: str) -> None:
    """With any date and Python, also a nightly that could not be resolved."""
    job = silent(cell=cell) if cell == UNTOLD else bad(cell=cell)
    since = compare_nights(night(1, bad(cell=DAYS[0])), night(2, job))
    assert (since.added, since.removed, since.new, since.gone) == ((), (), (), ())
    (one,) = since.unseen or since.still
    assert one.jobs == (JobAt(case="f/a", place=PLACE),)


def test_changed_packages_are_listed_by_place() -> None:
    """Packages of a place that was not provided are not removed."""
    jax = dict(zip(DAYS, ("0.13.0.dev20260501", "0.13.0.dev20260502"), strict=True))
    before, after = night(1, fine(cell=DAYS[0]), jax=jax), night(2, fine(cell=DAYS[1]), jax=jax)
    assert compare_nights(before, after).packages == (
        PackageChange(place=PLACE, package="jax", before=jax[DAYS[0]], after=jax[DAYS[1]]),
    )
    assert compare_nights(before, night(2, silent(cell=UNTOLD))).packages == ()


def ir(canonical: str, exact: str = "s", version: int = 1) -> IrRecord:
    """Return an IR."""
    return IrRecord(exact=exact, canonical=canonical, version=version)


def test_changed_artifacts_of_expected_jobs_are_listed() -> None:
    """Values and canonical forms of IRs, but not exact forms."""
    then = [
        fine("f/a", artifacts={"value": "1"}, ir={"hlo": ir("n"), "stablehlo": ir("n")}),
        fine("f/b", ir={"hlo": ir("n"), "stablehlo": ir("n"), "stablehlo-tpu": ir("n")}),
        fine("f/c", ir={"hlo": ir("n")}),
    ]
    now = [
        fine("f/a", artifacts={"value": "2"}, ir={"hlo": ir("m"), "stablehlo": ir("n", "t")}),
        fine("f/b", ir={"hlo": ir("m"), "stablehlo": ir("m"), "stablehlo-tpu": ir("m")}),
        fine("f/c", ir={"hlo": ir("n", "t")}),
    ]
    assert nights_on(then, now).artifacts == (
        ArtifactChange(artifact="value", place=HERE, cases=("f/a",)),
        ArtifactChange(artifact="stablehlo", place=HERE, cases=("f/b",)),
        ArtifactChange(artifact="hlo", place=HERE, cases=("f/a", "f/b")),
    )


@pytest.mark.parametrize(
    "now",
    [
        bad(artifacts={"value": "2"}),
        replace(fine(artifacts={"value": "2"}), case_hash="edited"),
        fine(ir={"hlo": ir("m", version=2)}),
        fine(ir={"hlo": ir("m", exact="")}),
        fine(),
    ],
    ids=["unexpected", "edited", "another normal form", "not understood", "not there"],
)
def test_incomparable_artifacts_are_not_listed(now: Record) -> None:
    """Unexpected jobs have causes, and edited cases are meant to change."""
    then = fine(artifacts={"value": "1"}, ir={"hlo": ir("n")})
    assert nights_on([then], [now]).artifacts == ()
