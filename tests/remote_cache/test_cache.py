"""The shared cache on stores of this process: round trips, and misses of damaged entries."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import obstore
import pytest

from conformance.engine.cache.blobs import hash_blob
from conformance.remote_cache.cache import RemoteCache, open_remote_cache
from conformance.remote_cache.entry import Namespace, make_path
from conformance.remote_cache.object_store import _open

if TYPE_CHECKING:
    from pathlib import Path

KEY = "jobs/kit-host/" + "a" * 32


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty cache."""
    if request.param == "file":
        return f"file://{tmp_path}/cache"
    return f"memory://{hash_blob(str(tmp_path).encode())}"


def test_entries_round_trip(url: str) -> None:
    """Actions and contents, alone and together."""
    writer = RemoteCache(url, write=True)
    names = {hash_blob(data): data for data in (b"", b"text", bytes(1 << 21))}
    assert writer.put_contents(names) == set(names)
    assert writer.put_action(KEY, b"record")
    reader = RemoteCache(url)
    assert dict(reader.get_contents([*names, "0" * 32])) == names
    assert reader.get_action(KEY) == b"record"
    assert reader.get_action(KEY + "b") is None
    assert (reader.damaged, reader.failure) == ({}, "")


def test_a_reader_writes_nothing(url: str) -> None:
    """Whether alone, together or in the background."""
    RemoteCache(url, write=True)
    reader = RemoteCache(url)
    assert not reader.put_action(KEY, b"record")
    reader.upload(KEY, b"record", [], lambda _: b"")
    assert reader.flush() == 0
    assert reader.get_action(KEY) is None


def test_the_first_writer_wins(url: str) -> None:
    """The second one is no failure: both have made the same observation."""
    first, second = RemoteCache(url, write=True), RemoteCache(url, write=True)
    assert first.put_action(KEY, b"first")
    assert second.put_action(KEY, b"second")
    assert second.get_action(KEY) == b"first"


def test_a_damaged_entry_is_a_miss_and_is_replaced(url: str) -> None:
    """By the next writer that has seen the damage."""
    writer = RemoteCache(url, write=True)
    obstore.put(_open(url, write=True), make_path(Namespace.ACTIONS, KEY), b"damage")
    assert writer.get_action(KEY) is None
    assert writer.damaged == {make_path(Namespace.ACTIONS, KEY): "is no entry of the cache"}
    assert writer.put_action(KEY, b"record")
    assert RemoteCache(url).get_action(KEY) == b"record"


def test_uploads_store_the_contents_of_an_action(url: str) -> None:
    """An action whose contents cannot be read is not stored."""
    writer = RemoteCache(url, write=True)
    contents = {hash_blob(data): data for data in (b"a", b"b")}
    writer.upload(KEY, b"record", contents, contents.__getitem__)
    writer.upload(KEY + "b", b"record", ["0" * 32], contents.__getitem__)
    assert writer.flush() == 1
    reader = RemoteCache(url)
    assert dict(reader.get_contents(contents)) == contents
    assert reader.get_action(KEY + "b") is None


def test_a_removed_action_is_missing(url: str) -> None:
    """Removing it twice is no failure."""
    writer = RemoteCache(url, write=True)
    writer.put_action(KEY, b"record")
    for _ in range(2):
        writer.remove_action(KEY)
        assert writer.get_action(KEY) is None
    assert writer.failure == ""


def test_a_cache_is_pickled_by_its_url(url: str) -> None:
    """For workers on other machines."""
    cache = open_remote_cache(url, write=True)
    assert pickle.loads(pickle.dumps(cache)) is cache  # noqa: S301 - of this test
    assert (cache.url, cache.write) == (url, True)


def test_a_missing_folder_is_a_dead_cache(tmp_path: Path) -> None:
    """Not an error: the folder may be on a network that is down."""
    reader = RemoteCache(f"file://{tmp_path}/missing")
    assert reader.get_action(KEY) is None
    assert "no such folder" in reader.failure
