"""Entries of the cache: damaged ones are misses, and a disk that refuses ends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cache_folder import CacheFolder

if TYPE_CHECKING:
    from pathlib import Path

CONTENT = b'{"outcome": "ok"}'


@pytest.fixture
def entries(tmp_path: Path) -> CacheFolder:
    """An empty folder that does not exist yet."""
    return CacheFolder(tmp_path / "results")


@pytest.fixture
def entry(entries: CacheFolder) -> Path:
    """An entry that was written."""
    path = entries.folder / "ab" / "abcd.json"
    assert entries.write(path, CONTENT)
    return path


def test_an_entry_comes_back(
    entries: CacheFolder, entry: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that there is not is a miss, without a word."""
    assert entries.read(entry) == CONTENT
    assert entries.read(entry.with_name("other")) is None
    assert caplog.messages == []


def test_each_changed_byte_is_a_miss_with_one_note(
    entries: CacheFolder, entry: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the digest and of the content; a cut, empty or replaced entry too."""
    whole = entry.read_bytes()
    for at in range(len(whole)):
        if at != len(whole) - len(CONTENT) - 1:  # the line break between them
            entry.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert entries.read(entry) is None, at
    for data in (b"", whole[:-1], whole[:64], CONTENT):
        entry.write_bytes(data)
        assert entries.read(entry) is None
    assert caplog.messages == [f"note: {entry}: damaged cache entry, ignored; it is written again"]


def test_an_entry_under_the_name_of_another_is_a_miss(entries: CacheFolder, entry: Path) -> None:
    """Its digest is of its name too."""
    other = entry.with_name("other.json")
    other.write_bytes(entry.read_bytes())
    assert entries.read(other) is None


def test_a_cache_that_cannot_be_written_is_noted_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing is raised."""
    (tmp_path / "file").write_text("in the way")
    entries = CacheFolder(tmp_path / "file" / "results")
    for name in ("a", "b"):
        assert not entries.write(entries.folder / name, CONTENT)
    (message,) = caplog.messages
    assert message.endswith("the run continues, its results are not cached")


def test_an_entry_that_is_no_file_is_a_miss(
    entries: CacheFolder, entry: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As is one that may not be read."""
    entry.unlink()
    entry.mkdir()
    assert entries.read(entry) is None
    assert len(caplog.messages) == 1
