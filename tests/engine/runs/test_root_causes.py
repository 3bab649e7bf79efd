"""Root causes: which unexpected jobs have the same cause."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.engine.runs.root_causes import find_root_causes
from conformance.model.outcome import Verdict
from conformance.model.record import ErrorInfo, IrRecord, IrStatus
from conformance.model.run_files import Culprit, Evidence
from tests.engine.records import record

if TYPE_CHECKING:
    from conformance.model.record import Record


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("f/a", "raised E: m", "E: m"), ("g/b", "raised E: m", "E: m"), True),
        (("f/a", "raised E: m", "E: m"), ("f/a", "raised E: n", "E: n"), False),
        (("f/a[x]", "out 3 of 4 differ", ""), ("f/a[y]", "out 9 of 16 differ", ""), True),
        (("f/a", "out 3 of 4 differ", ""), ("g/b", "out 3 of 4 differ", ""), False),
        (("f/a", "fact donation: 1 gone", ""), ("g/b", "fact donation: 1 gone", ""), True),
        (("f/a", "fact loops: 1, golden 2", ""), ("g/b", "fact loops: 1, golden 3", ""), False),
        (("f/a", "fact x: y; if intended: conformance accept f/a", ""),
         ("g/b", "fact x: y; if intended: conformance accept g/b", ""), True),
    ],
)  # fmt: skip
def test_jobs_with_one_cause(
    one: tuple[str, str, str], other: tuple[str, str, str], same: bool
) -> None:
    """The same error or fact in any case; values only of the same function."""
    records = [
        record(case, "c", Verdict.REGRESSED, reason,
               error=ErrorInfo(type="E", message="", signature=said) if said else None)
        for case, reason, said in (one, other)
    ]  # fmt: skip
    assert len(find_root_causes(records)) == (1 if same else 2)


def test_causes_are_grouped_largest_first() -> None:
    """The same reason of the same case is one cause; infrastructure is one for all its cases."""
    records = [
        record("f/a", "c1", Verdict.REGRESSED, "dtype"),
        record("f/b", "c1", Verdict.INFRA, "no network"),
        record("f/a", "c1", Verdict.MATCH),
        record("f/c", "c1", Verdict.INFRA, "no network"),
        record("f/a", "c2", Verdict.REGRESSED, "value"),
    ]
    found = [(one.reason, [r.case for r in one.records]) for one in find_root_causes(records)]
    assert found == [("no network", ["f/b", "f/c"]), ("dtype", ["f/a"]), ("value", ["f/a"])]


@given(st.permutations(range(6)))
def test_the_order_in_which_jobs_end_does_not_matter(order: list[int]) -> None:
    """A night on a busy host reads as one on an idle host."""
    records = [
        record(case, cell, Verdict.REGRESSED, f"{case} {said}")
        for case, said in (("f/a", "dtype"), ("f/b", "dtype"), ("f/c", "value"))
        for cell in ("c1", "c2")
    ]
    assert find_root_causes([records[number] for number in order]) == find_root_causes(records)


def test_a_cause_has_the_same_id_every_night() -> None:
    """However many jobs show it, and whichever comes first."""
    (one,) = find_root_causes([record("f/a[x]", "c", Verdict.REGRESSED, "out 3 of 4 differ")])
    (other,) = find_root_causes(
        record(case, cell, Verdict.REGRESSED, "out 9 of 16 differ")
        for case in ("f/a[y]", "f/a[x]")
        for cell in ("d", "c")
    )
    assert one.id == other.id
    assert (len(one.records), len(other.records)) == (1, 4)


def begins(
    case: str, *where: str, ir: str = "jaxpr", verdict: Verdict = Verdict.REGRESSED, said: str = ""
) -> Record:
    """Return the record of a job one of whose IRs begins to differ somewhere."""
    one = record(case, "c", verdict, said or f"out of {case} differs")
    return replace(one, ir={ir: IrRecord(status=IrStatus.CHANGED, begins=where)})


def test_programs_that_begin_to_differ_alike_are_one_cause() -> None:
    """Of any cases, values and verdicts."""
    (one,) = find_root_causes(
        [
            begins("f/a", "mul reads otherwise"),
            begins("g/b", "mul reads otherwise", verdict=Verdict.CHANGED),
            begins("h/c", "mul reads otherwise", said="fact loops: 1, golden 2"),
        ]
    )
    assert [record.case for record in one.records] == ["f/a", "g/b", "h/c"]


def test_a_job_with_two_causes_belongs_to_the_more_frequent() -> None:
    """The causes stay two."""
    found = find_root_causes(
        [
            begins("f/a", "mul reads otherwise"),
            begins("f/b", "mul reads otherwise"),
            begins("f/c", "all_gather new"),
            begins("f/d", "all_gather new", "mul reads otherwise"),
        ]
    )
    told = [[record.case for record in one.records] for one in found]
    assert told == [["f/a", "f/b", "f/d"], ["f/c"]]


def test_a_difference_of_expected_jobs_is_no_cause() -> None:
    """A release that changes all programs does not merge all failures."""
    records = [
        begins("f/a", "pvary new", "mul reads otherwise"),
        begins("f/b", "pvary new"),
        begins("f/c", "pvary new"),
        *(begins(f"g/{n}", "pvary new", verdict=Verdict.MATCH) for n in range(3)),
    ]
    assert [len(one.records) for one in find_root_causes(records)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("ir", "same"), [("jaxpr", True), ("stablehlo", True), ("hlo", False)]
)  # fmt: skip
def test_the_programs_ir_outranks_a_fact(ir: str, same: bool) -> None:
    """A fact outranks the compiler's IR."""
    facts = ("fact loops: 1, golden 2", "fact loops: 3, golden 4")
    records = [begins(f"f/{n}", "add new", ir=ir, said=said) for n, said in enumerate(facts)]
    assert len(find_root_causes(records)) == (1 if same else 2)


def test_the_compilers_ir_outranks_a_value() -> None:
    """If the program's own IR is unchanged."""
    assert (
        len(
            find_root_causes(
                [begins("f/a", "add new", ir="hlo"), begins("g/b", "add new", ir="hlo")]
            )
        )
        == 1
    )


def test_flaky_jobs_have_separate_causes() -> None:
    """Also if the program begins to differ in the same place."""
    found = find_root_causes(
        [begins("f/a", "add new"), begins("f/b", "add new", verdict=Verdict.FLAKY)]
    )
    assert len(found) == 2


def test_a_probe_belongs_to_the_only_cause_of_its_family() -> None:
    """It has no IR; if there are two causes or none, it is a separate cause."""
    probe = record("f/probe", "c", Verdict.REGRESSED, "out differs")
    elsewhere = replace(probe, cell="d")
    programs = [begins("f/a", "add new"), begins("f/b", "mul new")]
    assert [len(one.records) for one in find_root_causes([programs[0], probe, elsewhere])] == [2, 1]
    assert [len(one.records) for one in find_root_causes([*programs, probe])] == [1, 1, 1]
    assert [len(one.records) for one in find_root_causes([begins("g/a", "add new"), probe])] == [
        1,
        1,
    ]
    failed = replace(probe, error=ErrorInfo(type="E", message="", signature="E: m"))
    assert [len(one.records) for one in find_root_causes([programs[0], failed])] == [1, 1]


@pytest.mark.parametrize(
    ("first_bad", "version", "confirmed", "number"),
    [
        ("0.7.0", "2", True, 1),
        ("0.7.1", "2", True, 2),
        ("0.7.0", "3", True, 2),
        ("0.7.0", "2", False, 2),
    ],
)
def test_causes_with_the_same_culprit_are_merged(
    first_bad: str, version: str, confirmed: bool, number: int
) -> None:
    """Only with the same confirmed first bad point and package versions."""
    records = [
        record("f/a", "c1", Verdict.REGRESSED, "dtype"),
        record("f/a", "c2", Verdict.REGRESSED, "dtype"),
        record("g/b", "c1", Verdict.REGRESSED, "value"),
    ]
    large, small = find_root_causes(records)
    jax = Culprit(package="jax", before="1", after="2")
    other = Culprit(package="jax", before="1", after=version)
    evidence = {
        large.id: Evidence(
            cause=large.id, case="f/a", cell="c1", first_bad="0.7.0", confirmed=True,
            culprits=(jax,),
        ),
        small.id: Evidence(
            cause=small.id, case="g/b", cell="c1", first_bad=first_bad, confirmed=confirmed,
            culprits=(other,),
        ),
    }  # fmt: skip
    merged = find_root_causes(records, evidence)
    assert len(merged) == number
    assert merged[0].id == large.id
    assert sum(len(cause.records) for cause in merged) == len(records)


def test_a_merged_cause_has_the_id_of_the_largest() -> None:
    """Also if a smaller cause comes first in the run: issues are found by id."""
    records = [
        record("g/b", "c1", Verdict.REGRESSED, "value"),
        record("f/a", "c1", Verdict.REGRESSED, "dtype"),
        record("f/a", "c2", Verdict.REGRESSED, "dtype"),
    ]
    large, small = find_root_causes(records)
    assert len(large.records) == 2
    evidence = {
        cause.id: Evidence(
            cause=cause.id, case=cause.records[0].case, cell="c1", first_bad="0.7.0",
            confirmed=True, culprits=(Culprit(package="jax", before="1", after="2"),),
        )
        for cause in (large, small)
    }  # fmt: skip
    (merged,) = find_root_causes(records, evidence)
    assert merged.id == large.id
