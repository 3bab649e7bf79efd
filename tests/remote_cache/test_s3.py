"""The shared cache over the wire: round trips, two writers, and servers that fail."""

from __future__ import annotations

import threading
import time
import uuid
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import obstore
import pytest

from conformance.engine.cache.blobs import hash_blob
from conformance.errors import InfrastructureError
from conformance.remote_cache.cache import RemoteCache
from conformance.remote_cache.entry import Namespace, encode_entry, make_path
from conformance.remote_cache.maintenance import SharedEntries
from conformance.remote_cache.object_store import _open

from .servers import BUCKET, find_closed_port, serve_nothing, serve_s3, serve_status, use_endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

LONGEST = 10.0
"""Seconds that a dead cache may cost, in total."""

FAULTS: dict[str, Callable[[], AbstractContextManager[int]]] = {
    "refuses": lambda: nullcontext(find_closed_port()),
    "hangs": serve_nothing,
    "fails": partial(serve_status, 500),
}


def make_key(number: int = 0) -> str:
    """Return the key of an action."""
    return f"jobs/kit-host/{number:032x}"


def list_notes(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the notes about the cache; moto logs its requests."""
    return [one.getMessage() for one in caplog.records if one.name == "conformance.cache"]


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of an S3 server."""
    with serve_s3() as found:
        yield found


@pytest.fixture
def url(port: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an empty cache on the server."""
    use_endpoint(monkeypatch, port)
    return f"s3://{BUCKET}/{uuid.uuid4().hex}"


@pytest.mark.long
def test_hundreds_of_entries_round_trip(url: str) -> None:
    """Also a large content, which comes in pieces."""
    contents = {hash_blob(data): data for n in range(300) if (data := b"content %d" % n)}
    large = bytes(range(256)) * (1 << 13)
    contents[hash_blob(large)] = large
    writer = RemoteCache(url, write=True)
    assert writer.put_contents(contents) == set(contents)
    assert writer.put_actions({make_key(n): b"%d" % n for n in range(10)})
    found: dict[str, bytes] = {}
    for _ in range(5):  # a cache gives up a server that a busy host holds up
        found.update(RemoteCache(url).get_contents(contents.keys() - found.keys()))
    assert found == contents
    reader = RemoteCache(url)
    assert reader.list_actions("jobs/kit-host") == {make_key(n) for n in range(10)}
    assert reader.get_action(make_key(10)) is None
    assert reader.failure == ""


def test_two_writers_at_once_are_harmless(url: str) -> None:
    """Whoever is second keeps the entry of the first, on each key."""
    keys = [make_key(n) for n in range(40)]
    writers = [RemoteCache(url, write=True) for _ in range(2)]

    def write(number: int) -> None:
        assert writers[number].put_actions(dict.fromkeys(keys, b"%d" % number)) == set(keys)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = dict(RemoteCache(url).get_actions(keys))
    assert set(found) == set(keys)
    assert set(found.values()) <= {b"0", b"1"}
    assert all(writer.failure == "" for writer in writers)


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "foreign", "schema"])
def test_a_damaged_object_is_a_miss(url: str, damage: str) -> None:
    """The next writer replaces it."""
    key = make_key()
    entry = encode_entry(Namespace.ACTIONS, key, b"record" * 10)
    made = {
        "cut": entry[:-4], "changed": entry[:-4] + b"1234", "empty": b"", "foreign": b"{}",
        "schema": entry.replace(b"cache 1 ", b"cache 9 ", 1),
    }  # fmt: skip
    obstore.put(_open(url, write=True), make_path(Namespace.ACTIONS, key), made[damage])
    writer = RemoteCache(url, write=True)
    assert writer.get_action(key) is None
    assert len(writer.damaged) == 1
    assert writer.put_action(key, b"new")
    assert RemoteCache(url).get_action(key) == b"new"


def test_a_missing_bucket_is_one_note(
    port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is not an empty cache."""
    use_endpoint(monkeypatch, port)
    reader = RemoteCache(f"s3://missing-{uuid.uuid4().hex}")
    assert [reader.get_action(make_key(n)) for n in range(3)] == [None] * 3
    (line,) = list_notes(caplog)
    assert "not used any more: no such bucket" in line


@pytest.mark.parametrize("fault", FAULTS)
def test_a_dead_server_costs_at_most_ten_seconds(
    fault: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Reading together, one by one, and uploading; with one note and no error."""
    start = time.monotonic()
    with FAULTS[fault]() as port:
        use_endpoint(monkeypatch, port)
        _use_dead_cache()
    assert time.monotonic() - start < LONGEST
    (line,) = list_notes(caplog)
    assert "not used any more" in line


def _use_dead_cache() -> None:
    cache = RemoteCache(f"s3://{BUCKET}/{uuid.uuid4().hex}", write=True)
    assert dict(cache.get_actions(make_key(n) for n in range(500))) == {}
    for number in range(20):
        assert cache.get_content(f"{number:032x}") is None
        cache.upload(make_key(number), b"record", [], lambda _: b"")
    assert cache.flush() == 0
    assert not cache.put_action(make_key(), b"record")
    assert cache.failure


def test_a_server_that_dies_in_the_middle_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What came before counts, the rest is missing."""
    keys = [make_key(n) for n in range(900)]
    with serve_s3() as port:
        use_endpoint(monkeypatch, port)
        url = f"s3://{BUCKET}/{uuid.uuid4().hex}"
        left = set(keys)
        for _ in range(5):  # a cache gives up a server that a busy host holds up
            left -= RemoteCache(url, write=True).put_actions(dict.fromkeys(left, b"record"))
        assert not left
        cache = RemoteCache(url)
        found = cache.get_actions(keys)
        first = next(found)
    start = time.monotonic()
    rest = dict(found)
    assert first[1] == b"record"
    assert len(rest) < len(keys)
    assert time.monotonic() - start < LONGEST
    assert cache.failure


def test_a_server_that_refuses_writes_is_still_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Credentials may allow reading alone."""
    with serve_status(403) as port:
        use_endpoint(monkeypatch, port)
        cache = RemoteCache(f"s3://{BUCKET}/{uuid.uuid4().hex}", write=True)
        assert not cache.put_action(make_key(), b"record")
        assert not cache.put_action(make_key(1), b"record")
        assert cache.failure == ""
    (line,) = list_notes(caplog)
    assert "cannot be written: " in line


def test_maintenance_of_a_failing_server_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """One failed request is enough: what was not read must not be pruned."""
    with serve_status(500) as port:
        use_endpoint(monkeypatch, port)
        store = SharedEntries(RemoteCache(f"s3://{BUCKET}/{uuid.uuid4().hex}"))
        with pytest.raises(InfrastructureError, match="the server answers 500"):
            store.list_entries()
