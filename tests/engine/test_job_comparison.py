"""Comparison of two jobs of one case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.cache.blobs import BlobStore
from conformance.engine.ir_analysis import analyse_artifacts
from conformance.engine.job_comparison import (
    IrComparison,
    IrLevel,
    JobComparison,
    compare_irs_of_job,
    compare_jobs,
    group_by_changes,
)
from conformance.engine.runs.stored_job import StoredJob
from conformance.ir.change import Change, IrDiff
from conformance.model.outcome import Outcome, Stage
from conformance.model.record import ErrorInfo, Record
from conformance.model.value import encode_value
from tests.builders import f32
from tests.ir.texts import stablehlo

if TYPE_CHECKING:
    from pathlib import Path

HLO = """\
HloModule jit_f, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  ROOT %sum.7 = f32[4]{0} add(%x, %x)
}
"""


@pytest.fixture
def blobs(tmp_path: Path) -> BlobStore:
    """Where artifacts are."""
    return BlobStore(tmp_path / "blobs")


def side(
    blobs: BlobStore, hlo: str = "", value: float = 1, others: Any = None, **more: Any
) -> StoredJob:
    """Return a stored job, by default one that ended well."""
    texts = {"hlo": hlo.encode()} if hlo else {}
    texts |= {name: text.encode() for name, text in (others or {}).items()}
    artifacts = {"value": encode_value(f32(value)), **texts}
    record = Record(
        case="f/a", cell="c", case_hash="", cell_hash="", ir=analyse_artifacts(texts)[0],
        artifacts={name: blobs.put(data) for name, data in artifacts.items()},
        **{"outcome": Outcome.OK, "stage": Stage.EXECUTE, **more},
    )  # fmt: skip
    return StoredJob(record, blobs)


def make_failed_job(blobs: BlobStore, message: str) -> StoredJob:
    """Return a job that raised."""
    error = ErrorInfo(type="TypeError", message=message)
    return side(blobs, outcome=Outcome.RAISED, stage=Stage.TRACE, error=error)


@pytest.mark.parametrize("quick", [False, True])
def test_jobs_that_are_equal_except_for_names(blobs: BlobStore, quick: bool) -> None:
    """Each IR is compared by its text or its fingerprint."""
    found = compare_jobs(side(blobs, HLO), side(blobs, HLO.replace("sum.7", "s")), quick=quick)
    assert found.equal(IrLevel.EXACT)
    (one,) = found.irs
    assert one.diff is not None
    assert one.diff.equal
    assert bool(one.diff.facts) == (not quick)


def test_an_ir_that_only_one_job_has(blobs: BlobStore) -> None:
    """It is not equal to none."""
    found = compare_jobs(side(blobs, HLO), side(blobs))
    assert [(one.ir, one.problem) for one in found.irs] == [("hlo", "only the first has one")]
    assert not found.equal(IrLevel.CANONICAL)


def test_an_ir_that_cannot_be_parsed_is_a_problem(blobs: BlobStore) -> None:
    """The comparison reports nothing else about it."""
    (one,) = compare_jobs(side(blobs, HLO), side(blobs, "HloModule ?"), ["hlo"]).irs
    assert one.problem.startswith("not understood: hlo line 1")


def test_a_missing_blob_is_a_difference(blobs: BlobStore) -> None:
    """It does not end a comparison of many jobs."""
    a, b = side(blobs, HLO), side(blobs, HLO.replace("add", "multiply"), 2)
    for file in blobs.folder.iterdir():
        file.unlink()
    found = compare_jobs(a, b)
    assert "cannot be read" in found.difference
    assert "cannot be read" in found.irs[0].problem


def test_values_are_compared_by_the_default_tolerance(blobs: BlobStore) -> None:
    """By the default tolerance."""
    assert not compare_jobs(side(blobs), side(blobs, value=1 + 1e-7)).difference
    said = compare_jobs(side(blobs), side(blobs, value=2)).difference
    assert said.startswith("value: out 1 of 1 elements differ, worst at [0]: 2.0 against 1.0")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("bad shape", "bad shape", ""),
        ("bad shape", "bad type", "raised TypeError at trace: bad shape -> raised TypeError at tr"),
        ("bad\nx 1\ny", "bad\nx 1\nz", "raised TypeError at trace: bad ... 'y' -> 'z'"),
    ],
)
def test_errors_are_described_by_their_first_differing_line(
    blobs: BlobStore, before: str, after: str, said: str
) -> None:
    """Where the first lines are the same, the first that is not."""
    found = compare_jobs(make_failed_job(blobs, before), make_failed_job(blobs, after)).difference
    assert found.startswith(said) if said else not found


def test_a_failure_of_one_job_is_a_difference(blobs: BlobStore) -> None:
    """How each ended."""
    found = compare_jobs(side(blobs), make_failed_job(blobs, "bad"))
    assert found.difference == "ok at execute -> raised TypeError at trace: bad"
    assert found.outcomes == (Outcome.OK, Outcome.RAISED)


def job(name: str, *changes: tuple[str, str, int], neutral: bool = False) -> JobComparison:
    """Return two jobs whose HLO differs by some changes: severity, title, count."""
    made = tuple(Change(kind="changed", severity=s, title=t, count=n) for s, t, n in changes)
    diff = IrDiff(kind="hlo", equal=not made, neutral_equal=not made or neutral, changes=made)
    ok = (Outcome.OK, Outcome.OK)
    one = IrComparison(ir="hlo", diff=diff)
    return JobComparison(case=name, cells=("c", "c"), outcomes=ok, irs=(one,))


def test_jobs_are_grouped_by_their_gravest_changes() -> None:
    """Counts do not matter; the smallest difference is the example."""
    found = group_by_changes(
        [
            job("a", ("semantic", "x", 3)),
            job("b", ("semantic", "x", 1), ("cosmetic", "z", 1)),
            job("c", ("semantic", "x", 1), ("semantic", "y", 1)),
            job("d"),
            job("e", ("structural", "w", 1), neutral=True),
        ],
        IrLevel.EXACT,
    )
    assert [[one.case for one in group.jobs] for group in found] == [["b", "a"], ["c"], ["e"]]
    assert found[0].example.changes[0].count == 1


def test_equal_canonical_forms_are_in_no_group() -> None:
    """Unless a change is semantic."""
    work = [
        job("a", ("structural", "x", 1), neutral=True),
        job("b", ("semantic", "sharding", 1), neutral=True),
    ]
    (group,) = group_by_changes(work, IrLevel.CANONICAL)
    assert [one.case for one in group.jobs] == ["b"]


SINE, COSINE = (
    stablehlo(f'%r = "stablehlo.{op}"(%x) : (tensor<4xf32>) -> tensor<4xf32>')
    for op in ("sine", "cosine")
)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"stablehlo-tpu": SINE}, {"stablehlo-tpu": SINE}, []),
        ({"stablehlo-tpu": SINE}, {}, []),
        ({"stablehlo-tpu": SINE}, {"stablehlo-tpu": COSINE}, ["stablehlo-tpu"]),
        ({"stablehlo-tpu": COSINE}, {"stablehlo-tpu": COSINE}, ["stablehlo-tpu"]),
    ],
)
def test_irs_equal_to_the_cells_own_are_not_compared(
    blobs: BlobStore, before: dict[str, str], after: dict[str, str], told: list[str]
) -> None:
    """Nor IRs that only one job has, unless they are selected."""
    a, b = (side(blobs, others={"stablehlo": SINE, **more}) for more in (before, after))
    assert [one.ir for one in compare_jobs(a, b).irs] == ["stablehlo", *told]
    assert [one.ir for one in compare_jobs(a, b, ["stablehlo-tpu"]).irs] == ["stablehlo-tpu"]


def test_irs_of_one_job_for_two_platforms(blobs: BlobStore) -> None:
    """How a program is lowered for another one."""
    job = side(blobs, others={"stablehlo": SINE, "stablehlo-tpu": COSINE, "stablehlo-cuda": SINE})
    found = compare_irs_of_job(job, "stablehlo", "stablehlo-tpu")
    assert found is not None
    (one,) = found.irs
    assert (one.ir, found.id) == ("stablehlo -> stablehlo-tpu", "f/a on c")
    assert one.diff is not None
    assert [change.title for change in one.diff.changes] == ["sine -> cosine"]
    same = compare_irs_of_job(job, "stablehlo", "stablehlo-cuda")
    assert same is not None
    assert same.equal(IrLevel.EXACT)
    assert compare_irs_of_job(job, "stablehlo", "stablehlo-rocm") is None
