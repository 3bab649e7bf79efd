"""The cache of digests."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import msgspec
import pytest
import zstandard

from conformance.cache_folder import CacheFolder
from conformance.engine.process_pool import MANY
from conformance.engine.runs.digests import FORMAT, DigestStore, make_digest
from conformance.engine.runs.directory import RESULTS, RUN, CorruptRunError, Results, RunDirectory
from conformance.model.run import RunInfo
from tests.engine.written_runs import FINISHED, A, record, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> DigestStore:
    """Return a store."""
    return DigestStore(tmp_path / "kept")


def find_digest_file(tmp_path: Path) -> Path:
    """Return the only kept file."""
    (file,) = (tmp_path / "kept").iterdir()
    return file


def test_a_digest_is_made_once(tmp_path: Path, store: DigestStore) -> None:
    """Later requests read it from its file."""
    run = write(tmp_path / "r1", record("f/a", A))
    made = store.get(run)
    written = find_digest_file(tmp_path).stat()
    assert DigestStore(tmp_path / "kept").get(run) == made == make_digest(run)
    assert find_digest_file(tmp_path).stat() == written


def test_a_changed_run_gets_a_new_digest(tmp_path: Path, store: DigestStore) -> None:
    """After more results, or with another `run.json`."""
    run = write(tmp_path / "r1", record("f/a", A), finished="")
    assert store.get(run).cases == ("f/a",)
    results = Results(run)
    results.append(record("f/b", A))
    results.close()
    assert store.get(run).cases == ("f/a", "f/b")
    info = run.read_run()
    run.write_run(RunInfo(started=info.started, finished=FINISHED, cells=info.cells))
    assert store.get(run).finished == FINISHED


def test_a_change_of_the_same_size_is_seen(tmp_path: Path, store: DigestStore) -> None:
    """By the modification time of the file."""
    run = write(tmp_path / "r1", record("f/a", A))
    store.get(run)
    file = run.path / RESULTS
    file.write_bytes(file.read_bytes().replace(b'"f/a"', b'"f/z"'))
    os.utime(file, ns=(0, 1))
    assert store.get(run).cases == ("f/z",)


def test_a_broken_digest_is_made_again(tmp_path: Path, store: DigestStore) -> None:
    """Empty, cut, with a flipped bit, no digest, or of another version."""
    run = write(tmp_path / "r1", record("f/a", A))
    made = store.get(run)
    file = find_digest_file(tmp_path)
    whole = file.read_bytes()
    flipped = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
    entries = CacheFolder(file.parent)
    content = entries.read(file)
    assert content is not None
    fields = msgspec.msgpack.decode(zstandard.decompress(content))
    other = [FORMAT + 1, *fields[1:]]
    other[2][0] = "another"
    foreign = zstandard.compress(msgspec.msgpack.encode({"a": 1}))
    later = zstandard.compress(msgspec.msgpack.encode(other))
    for data in (b"", whole[:-20], flipped, b"no digest"):
        file.write_bytes(data)
        assert store.get(run) == made
        assert file.read_bytes() == whole
    for data in (foreign, later):
        entries.write(file, data)
        assert store.get(run) == made
        assert file.read_bytes() == whole


def test_runs_of_one_name_in_two_folders_have_two_digests(
    tmp_path: Path, store: DigestStore
) -> None:
    """E.g. the shards of two nights."""
    one = write(tmp_path / "a" / "shard-1", record("f/a", A))
    other = write(tmp_path / "b" / "shard-1", record("f/b", A))
    assert store.get(one).cases != store.get(other).cases
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_unreadable_runs_are_reported_and_skipped(tmp_path: Path, store: DigestStore) -> None:
    """A sentence for each, with the file and the expected content."""
    good = write(tmp_path / "good", record("f/a", A))
    broken = write(tmp_path / "broken", record("f/a", A))
    (broken.path / RESULTS).write_text('{"case": "f/a"}\n')
    for name, text in (("foreign", json.dumps([1])), ("empty", "{}"), ("cut", '{"started"')):
        (tmp_path / name).mkdir()
        (tmp_path / name / RUN).write_text(text)
    (tmp_path / "none").mkdir()
    names = ("broken", "good", "foreign", "empty", "cut", "none")
    found, problems = store.get_all([RunDirectory(tmp_path / name) for name in names])
    assert found == {good: make_digest(good)}
    assert len(problems) == 5
    assert f"{tmp_path / 'broken' / RESULTS}:1: expected a record" in problems[0]
    assert "expected a run, got a folder without any job" in problems[2]
    with pytest.raises(CorruptRunError, match="cannot be read"):
        store.get(RunDirectory(tmp_path / "none"))


def test_several_processes_give_the_same_digests(tmp_path: Path) -> None:
    """They only read many new runs faster."""
    runs = [write(tmp_path / f"r{n}", record(f"f/{n}", A)) for n in range(MANY)]
    (runs[7].path / RUN).write_text("{}")
    (runs[7].path / RESULTS).unlink()
    alone = DigestStore(tmp_path / "alone").get_all(runs)
    assert DigestStore(tmp_path / "both", processes=2).get_all(runs) == alone
    assert (len(alone[0]), len(alone[1])) == (MANY - 1, 1)


def test_an_unwritable_cache_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """With the folder and a remedy."""
    run = write(tmp_path / "r1", record("f/a", A))
    (tmp_path / "file").write_text("")
    store = DigestStore(tmp_path / "file")
    assert store.get(run) == store.get(run) == make_digest(run)
    (message,) = caplog.messages
    assert "cannot be written: " in message
