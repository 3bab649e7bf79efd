"""Merged shards equal the undivided run, or an error names the problem."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from conformance.engine.runs.loader import LoadedRun, load_run
from conformance.engine.shards import merge_shards, order_shards
from conformance.errors import UsageError
from conformance.model.run import Exclusion, RunCell

from .written_runs import A, record, write

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.model.record import Record

ONE, TWO, THREE = (record(f"family/{name}", A) for name in ("one", "two", "three"))


def part(path: Path, number: int, count: int, *records: Record, **info: Any) -> LoadedRun:
    """Return a part of a run."""
    request = {"select": ["cases"], "matrix": "smoke", "shard": f"{number}/{count}"}
    return load_run(write(path / f"shard-{number}", *records, **{"request": request, **info}))


def test_merged_shards_equal_the_undivided_run(tmp_path: Path) -> None:
    """Jobs in the order of the plan; from the first start to the last end."""
    left_out = (Exclusion(case="", cell="jax0.4.30-py311-cpu8", reason="no wheels"),)
    first = part(tmp_path, 1, 2, ONE, exclusions=left_out, started="2026-05-01T10:00:05+00:00")
    second = part(tmp_path, 2, 2, TWO, THREE, finished="2026-05-01T11:00:00+00:00")
    info, records = merge_shards(order_shards([second, first]))
    assert records == [ONE, TWO, THREE]
    assert info.plan == tuple((one.case, one.cell) for one in records)
    assert info.request["shard"] == "1/1"
    assert info.exclusions == left_out
    assert (info.started, info.finished) == (
        "2026-05-01T10:00:00+00:00", "2026-05-01T11:00:00+00:00",
    )  # fmt: skip


def test_a_cell_of_two_shards_is_merged(tmp_path: Path) -> None:
    """With the identities that both workers reported."""
    cells = (RunCell(id=A, versions={"jax": "0.5.3"}),)
    parts = [
        part(tmp_path, 1, 2, ONE, cells=cells, identities={A: {"pid": 1}}),
        part(tmp_path, 2, 2, TWO, cells=cells, identities={A: {"pid": 2}}),
    ]
    info, _ = merge_shards(order_shards(parts))
    assert info.cells == cells
    assert set(info.identities) == {A}


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    """It is named."""
    with pytest.raises(UsageError, match=r"shards 2/4, 4/4 missing; name the directory"):
        order_shards([part(tmp_path, 1, 4, ONE), part(tmp_path, 3, 4, TWO)])


def test_a_duplicate_shard_is_named(tmp_path: Path) -> None:
    """With where it was found."""
    one = part(tmp_path, 1, 2, ONE)
    with pytest.raises(UsageError, match=r"shard 1/2 was given more than once: shard-1, shard-1"):
        order_shards([one, one, part(tmp_path, 2, 2, TWO)])


def test_an_unfinished_shard_is_refused(tmp_path: Path) -> None:
    """Its jobs would be lost silently."""
    plan = ((ONE.case, A), (TWO.case, A))
    with pytest.raises(UsageError, match=r"shard-1: 1 job not ended; .* --resume"):
        order_shards([part(tmp_path, 1, 1, ONE, plan=plan)])


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"request": {"select": ["cases"], "matrix": "releases", "shard": "2/2"}},
         "was not run with the same matrix as in shard-1"),
        ({"request": {"select": ["cases"], "matrix": "smoke", "shard": "2/3"}},
         "has not the same number of shards as in shard-1"),
        ({"versions": {"kit": "another"}}, "has not the same version of the harness as in shard-1"),
        ({"request": {}}, "does not say which shard it is"),
    ],
)  # fmt: skip
def test_a_shard_of_another_run_is_refused(tmp_path: Path, info: dict[str, Any], said: str) -> None:
    """The message names the difference."""
    with pytest.raises(UsageError, match=said):
        order_shards([part(tmp_path, 1, 2, ONE), part(tmp_path, 2, 2, TWO, **info)])


def test_shards_of_different_checkouts_are_merged(tmp_path: Path) -> None:
    """Their requests are equal relative to the project."""
    parts = []
    for number, root in enumerate(("/home/a/project", "/home/b/project"), 1):
        request = {"select": [f"{root}/mine/cases"], "shard": f"{number}/2"}
        made = part(tmp_path, number, 2, (ONE, TWO)[number - 1], request=request, root=root)
        parts.append(made)
    assert len(order_shards(parts)) == 2


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"plan": ((ONE.case, A), ("family/none", A))}, "the first is family/none on jax0.5.3"),
        ({"plan": ((ONE.case, A), (ONE.case, A))}, "its plan names a job twice"),
        ({"plan": ()}, "holds a record of family/one on jax0.5.3-py311-cpu8, which is not planned"),
        ({"request": {"shard": "1/²"}}, "does not say which shard it is"),
        ({"request": {"shard": "3/2"}}, "does not say which shard it is"),
        ({"request": {"shard": f"1/{'9' * 5000}"}}, "does not say which shard it is"),
        ({"request": {"shard": "1/1", "nights": 7}}, "expected the names of nightlies"),
        ({"request": {"shard": "1/1", "nights": [7]}}, "expected the names of nightlies"),
    ],
)  # fmt: skip
def test_a_forged_shard_is_refused(tmp_path: Path, more: dict[str, Any], said: str) -> None:
    """Shards are untrusted input."""
    run = write(tmp_path / "shard-1", ONE, **{"request": {"shard": "1/1"}, **more})
    parts = [LoadedRun.of(run, run.read_run(), run.read_records())]
    with pytest.raises(UsageError, match=said):
        order_shards(parts)


@pytest.mark.parametrize("case", ["../evil", "one", "a/\n", "/etc/x", "./x", ""])
def test_ids_that_are_paths_are_refused(tmp_path: Path, case: str) -> None:
    """Pages and files are named after ids."""
    with pytest.raises(UsageError, match="expected ids of a run"):
        order_shards([part(tmp_path, 1, 1, replace(ONE, case=case))])


def test_a_job_in_two_shards_is_refused(tmp_path: Path) -> None:
    """Either record may be the right one."""
    with pytest.raises(UsageError, match=r"family/one on .* is planned in shard-1 and in shard-2"):
        order_shards([part(tmp_path, 1, 2, ONE), part(tmp_path, 2, 2, ONE)])
