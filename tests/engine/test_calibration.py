"""The calibration of a host: stored, read back, and valid for one content of a case."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.engine.calibration import (
    Calibration,
    UnstableJob,
    load_calibration,
    locate_calibration,
    update_calibration,
)
from conformance.engine.job import Job
from conformance.errors import UsageError

from .worlds import job

if TYPE_CHECKING:
    from pathlib import Path


def unstable(one: Job, **more: object) -> UnstableJob:
    """Return that a job is not stable."""
    fields = {
        "case": one.case.id, "cell": one.planned.cell.id, "case_hash": one.case.content_hash,
        "attempts": 5, "differing": 1, "example": "out 1 against 2", "day": "2026-05-01", **more,
    }  # fmt: skip
    return UnstableJob(**fields)  # type: ignore[arg-type]


def test_entries_are_read_back(tmp_path: Path) -> None:
    """With the facts of the host; a host without a calibration has no entries."""
    assert load_calibration(tmp_path).unstable == ()
    known = update_calibration(tmp_path, (), [unstable(job(tmp_path))], print)
    assert load_calibration(tmp_path) == known
    assert known.host


def test_an_entry_holds_for_one_content_of_a_case(tmp_path: Path) -> None:
    """Not for another content, cell or case."""
    one = job(tmp_path)
    known = Calibration(unstable=(unstable(one),))
    assert known.find(one) == unstable(one)
    assert known.find(Job(case=replace(one.case, content_hash="new"), planned=one.planned)) is None
    assert known.find(job(tmp_path, "two")) is None


def test_calibrating_again_replaces_entries(tmp_path: Path) -> None:
    """Jobs that are stable now are removed; entries of other jobs stay."""
    one, two, three = (job(tmp_path, name) for name in ("one", "two", "three"))
    update_calibration(tmp_path, (), [unstable(one), unstable(two)], print)
    after = update_calibration(tmp_path, {one.id, three.id}, [unstable(three)], print)
    assert [u.case for u in after.unstable] == ["family/three", "family/two"]


@pytest.mark.parametrize("text", ["{", "[]", '{"unstable": [{"case": 3}]}', "\udcff"])
def test_a_broken_file_is_named(tmp_path: Path, text: str) -> None:
    """The message has a remedy."""
    file = locate_calibration(tmp_path)
    file.parent.mkdir()
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageError, match="delete it, and write it again with: conformance calib"):
        load_calibration(tmp_path)


def test_concurrent_updates_are_all_kept(tmp_path: Path) -> None:
    """Each update adds to the current content of the file."""
    jobs = [job(tmp_path, f"name{number:02}") for number in range(12)]
    with ThreadPoolExecutor(6) as pool:
        pool.map(lambda one: update_calibration(tmp_path, [one.id], [unstable(one)], print), jobs)
    known = load_calibration(tmp_path)
    assert known.unstable == tuple(unstable(one) for one in jobs)
