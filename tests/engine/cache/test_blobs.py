"""The store of blobs: contents round trip, or an error names the blob."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.compression import LARGEST
from conformance.engine.cache.blobs import LARGE, BlobStore, CorruptBlobError, hash_blob
from conformance.errors import InfrastructureError
from conformance.remote_cache.cache import RemoteCache
from tests.test_compression import zeros

SMALL, BIG = b"small", b"big" * LARGE
both = pytest.mark.parametrize("data", [SMALL, BIG], ids=["small", "large"])


around_the_limit = st.integers(LARGE - 2, LARGE + 2).map(
    lambda size: (bytes(range(256)) * LARGE)[:size]
)


@given(st.lists(st.binary(max_size=100) | around_the_limit, max_size=4))
def test_contents_round_trip(contents: list[bytes]) -> None:
    """Any contents, also empty, on both sides of the limit for compression."""
    with TemporaryDirectory() as folder:
        store = BlobStore(Path(folder))
        names = [store.put(data) for data in contents]
        assert [store.get(name) for name in names] == contents
        assert len(list(Path(folder).iterdir())) == len(set(contents))


@both
def test_a_name_is_the_hash_of_the_content(tmp_path: Path, data: bytes) -> None:
    """The same content is stored once; large ones are compressed."""
    store = BlobStore(tmp_path / "deep" / "blobs")
    assert store.put(data) == store.put(data) == hash_blob(data)
    (file,) = store.folder.iterdir()
    assert file.suffix == (".zst" if data is BIG else "")
    assert file.stat().st_size <= len(data)


@both
@pytest.mark.parametrize("damage", ["cut", "changed", "gone"])
def test_a_damaged_blob_is_never_returned(tmp_path: Path, data: bytes, damage: str) -> None:
    """Its file is in the message."""
    store = BlobStore(tmp_path)
    name = store.put(data)
    (file,) = tmp_path.iterdir()
    stored = file.read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        file.write_bytes(stored[:-2] if damage == "cut" else stored[:-1] + b"?")
    with pytest.raises(CorruptBlobError, match=name):
        store.get(name)


@both
def test_a_blob_is_adopted_without_a_copy(tmp_path: Path, data: bytes) -> None:
    """By a hard link; adopting it again changes nothing."""
    source, store = BlobStore(tmp_path / "a"), BlobStore(tmp_path / "b")
    name = source.put(data)
    store.adopt(name, source)
    store.adopt(name, source)
    assert store.get(name) == data
    (file,) = store.folder.iterdir()
    assert file.stat().st_nlink == 2


def test_a_blob_is_copied_where_links_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As between two file systems."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", refuse)
    source, store = BlobStore(tmp_path / "a"), BlobStore(tmp_path / "b")
    store.folder.mkdir()
    name = source.put(SMALL)
    store.adopt(name, source)
    assert store.get(name) == SMALL


def test_a_missing_blob_cannot_be_adopted(tmp_path: Path) -> None:
    """The message names the other store."""
    with pytest.raises(CorruptBlobError, match=r"a/0{32}: missing"):
        BlobStore(tmp_path / "b").adopt("0" * 32, BlobStore(tmp_path / "a"))


def test_a_disk_error_is_an_infrastructure_error(tmp_path: Path) -> None:
    """The message names the folder and a remedy."""
    (tmp_path / "blobs").write_text("in the way")
    with pytest.raises(InfrastructureError, match="cannot be written"):
        BlobStore(tmp_path / "blobs").put(SMALL)


@pytest.mark.parametrize(
    "name",
    ["../../../conftest_evil.py", "/etc/passwd", "0" * 31, "0" * 65, "A" * 32, "", "\0" * 32],
)
def test_a_name_that_is_no_hash_is_refused(tmp_path: Path, name: str) -> None:
    """Whether a blob is read, adopted or dropped: no name leads out of the folder."""
    source, store = BlobStore(tmp_path / "a" / "blobs"), BlobStore(tmp_path / "b" / "blobs")
    outside = tmp_path / "conftest_evil.py"
    outside.write_text("evil")
    for act in (
        lambda: store.get(name),
        lambda: store.adopt(name, source),
        lambda: store.sync([name]),
    ):
        with pytest.raises(CorruptBlobError, match="expected 32 to 64 hexadecimal digits"):
            act()
    assert outside.read_text() == "evil"
    assert not store.folder.exists()


def test_sync_skips_missing_blobs(tmp_path: Path) -> None:
    """The reader of a missing blob reports it."""
    store = BlobStore(tmp_path / "blobs")
    store.sync(["0" * 32])
    assert not store.folder.exists()


@pytest.mark.parametrize("kind", ["symlink", "pipe", "folder"])
def test_only_regular_files_are_blobs(tmp_path: Path, kind: str) -> None:
    """A link to a file with the right content is refused, and a pipe is not waited for."""
    source, store = BlobStore(tmp_path / "a"), BlobStore(tmp_path / "b")
    name = hash_blob(SMALL)
    source.folder.mkdir()
    (tmp_path / "target").write_bytes(SMALL)
    file = source.folder / name
    if kind == "symlink":
        file.symlink_to(tmp_path / "target")
    elif kind == "pipe":
        os.mkfifo(file)
    else:
        file.mkdir()
    with pytest.raises(CorruptBlobError, match=name):
        source.get(name)
    for trusted in (True, False):
        with pytest.raises(CorruptBlobError, match=name):
            store.adopt(name, source, trusted=trusted)
    assert not store.folder.exists()


def test_an_untrusted_blob_is_hashed_before_it_is_adopted(tmp_path: Path) -> None:
    """A blob whose content does not match its name does not enter a run."""
    source, store = BlobStore(tmp_path / "a"), BlobStore(tmp_path / "b")
    name = source.put(SMALL)
    (source.folder / name).write_bytes(b"forged")
    with pytest.raises(CorruptBlobError, match=f"expected {name}"):
        store.adopt(name, source, trusted=False)
    assert not store.folder.exists()


def test_a_bomb_is_not_decompressed(tmp_path: Path) -> None:
    """A blob that states a huge size is refused at once."""
    name = "0" * 32
    (tmp_path / f"{name}.zst").write_bytes(zeros(LARGEST + 1))
    with pytest.raises(CorruptBlobError, match="more than 1024 MiB when decompressed"):
        BlobStore(tmp_path).get(name)


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RemoteCache:
    """A shared cache, and an empty local cache."""
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
    return RemoteCache(f"file://{tmp_path}/shared", write=True)


@both
def test_a_missing_blob_comes_from_the_origin(
    tmp_path: Path, shared: RemoteCache, data: bytes
) -> None:
    """And is kept, in the store and in the local cache."""
    store, name = BlobStore(tmp_path / "run"), hash_blob(data)
    shared.put_content(name, data)
    with pytest.raises(CorruptBlobError, match="no such file"):
        store.get(name)
    store.write_origin(shared.url)
    assert store.get(name) == data
    assert store.has(name)
    other = BlobStore(tmp_path / "other")
    other.write_origin(f"file://{tmp_path}/nothing")
    assert other.get(name) == data


def test_missing_blobs_are_fetched_together(tmp_path: Path, shared: RemoteCache) -> None:
    """One that the origin lacks stays missing."""
    store, names = BlobStore(tmp_path / "run"), [hash_blob(SMALL), hash_blob(BIG), "0" * 32]
    shared.put_contents({names[0]: SMALL, names[1]: BIG})
    store.fetch_missing(names)
    assert not store.has(names[0])
    store.write_origin(shared.url)
    store.fetch_missing(names)
    assert [store.has(name) for name in names] == [True, True, False]


@pytest.mark.parametrize("origin", ["s3://a:b@c", "nothing", "\0", "file:///missing/folder"])
def test_an_origin_that_cannot_be_used_is_a_missing_blob(
    tmp_path: Path, shared: RemoteCache, origin: str
) -> None:
    """A run directory is untrusted input."""
    store = BlobStore(tmp_path / "run")
    store.write_origin(origin)
    store.fetch_missing(["0" * 32])
    with pytest.raises(CorruptBlobError, match="run its job again with --fresh"):
        store.get("0" * 32)


def test_a_damaged_blob_is_not_fetched(tmp_path: Path, shared: RemoteCache) -> None:
    """It is reported: its store needs attention."""
    store = BlobStore(tmp_path / "run")
    name = store.put(SMALL)
    shared.put_content(name, SMALL)
    store.write_origin(shared.url)
    (store.folder / name).write_bytes(b"damage")
    with pytest.raises(CorruptBlobError, match="got content"):
        store.get(name)
