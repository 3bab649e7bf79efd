"""A cache that is damaged, full or read-only: the run goes on, and judges as without a cache."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from conformance.engine.runs.directory import RunDirectory
from tests.engine.worlds import World, good

if TYPE_CHECKING:
    from pathlib import Path

    from conformance.engine.job import FinishedJob, Job
    from conformance.model.record import Record


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two cases and a cache that holds what they did."""
    made = World(tmp_path, "one", "two")
    made.run("first", fresh=False)
    return made


def judged(records: list[Record]) -> list[Record]:
    """Return records without what tells a cached one from one that ran."""
    return [replace(one, cached=False, seconds={}, attempts=1) for one in records]


@pytest.mark.parametrize("kind", ["results", "settled"])
def test_one_changed_character_is_a_miss(
    world: World, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Wherever it is, the verdicts are those of a run without a cache."""
    expected = judged(world.run("fresh"))
    entries = sorted((world.folder / "cache" / kind).rglob("*.json*"))
    contents = {entry: entry.read_bytes() for entry in entries}
    assert contents
    for number, at in enumerate(range(0, min(map(len, contents.values())), 23)):
        for other in (world.folder / "cache").rglob("*.jsonl"):
            other.unlink()
        for entry, content in contents.items():
            digit = b"1" if content[at : at + 1] != b"1" else b"2"
            entry.write_bytes(content[:at] + digit + content[at + 1 :])
        assert judged(world.run(f"run{number}", fresh=False)) == expected, at
        # What was judged is gone, but what the jobs did is still there.
        assert world.script.asked == (["one", "two"] if kind == "results" else [])
    assert sum("damaged cache entry" in message for message in caplog.messages) == 1


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("name", ["value", "jaxpr"])
def test_a_damaged_blob_is_a_miss(
    tmp_path: Path, name: str, settled: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Also one that judging does not read: every run directory is whole, the log has a note."""
    world = World(tmp_path, "one", "two")
    world.script.answers["one"] = [with_jaxpr]
    expected = judged(world.run("first", fresh=False))
    if not settled:
        shutil.rmtree(tmp_path / "cache" / "settled")
    damaged = tmp_path / "cache" / "blobs" / expected[0].artifacts[name]
    damaged.unlink()  # the first run has the same file
    damaged.write_bytes(b"damaged")
    assert judged(world.run("second", fresh=False)) == expected
    assert "one" in world.script.asked
    for run in ("first", "second"):
        blobs = RunDirectory(tmp_path / run).blobs
        assert all(blobs.get(one) for r in expected for one in r.artifacts.values())
    notes = [message for message in caplog.messages if "damaged cache entry" in message]
    assert notes
    assert all(str(damaged) in message for message in notes)
    world.run("third", fresh=False)
    assert world.script.asked == []


def with_jaxpr(job: Job) -> FinishedJob:
    """Return a job that ended well, with an artifact that judging does not read."""
    finished = good(job)
    return replace(finished, blobs={**finished.blobs, "jaxpr": b"{ lambda ; . let in () }"})


@pytest.mark.parametrize("kind", ["results", "settled", "blobs"])
def test_a_cache_that_cannot_be_written_ends_no_run(
    tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A file stands where its folder would be; the log says so once."""
    world = World(tmp_path, "one", "two")
    (tmp_path / "cache").mkdir(exist_ok=True)
    (tmp_path / "cache" / kind).write_text("in the way")
    records = world.run("run", fresh=False)
    assert [record.case for record in records] == ["family/one", "family/two"]
    assert len(world.directory.read_records()) == len(records)
    assert all(world.directory.blobs.get(name) for r in records for name in r.artifacts.values())
    (message,) = caplog.messages
    assert message.endswith("the run continues, its results are not cached")
