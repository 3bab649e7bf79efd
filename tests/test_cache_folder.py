"""Entries of the cache: damaged entries are misses, and a failing disk ends nothing."""

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


def test_written_entry_is_read(
    entries: CacheFolder, entry: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A missing entry is a miss without a note."""
    assert entries.read(entry) == CONTENT
    assert entries.read(entry.with_name("other")) is None
    assert caplog.messages == []


def test_changed_entry_is_a_miss_with_one_note(
    entries: CacheFolder, entry: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Any byte of digest and content; also truncated, empty and replaced entries."""
    whole = entry.read_bytes()
    for at in range(len(whole)):
        if at != len(whole) - len(CONTENT) - 1:  # the line break between them
            entry.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert entries.read(entry) is None, at
    for data in (b"", whole[:-1], whole[:64], CONTENT):
        entry.write_bytes(data)
        assert entries.read(entry) is None
    assert caplog.messages == [f"note: {entry}: damaged cache entry, ignored; it is written again"]


def test_entry_under_another_name_is_a_miss(entries: CacheFolder, entry: Path) -> None:
    """The digest includes the name."""
    other = entry.with_name("other.json")
    other.write_bytes(entry.read_bytes())
    assert entries.read(other) is None


def test_unwritable_cache_is_noted_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is raised."""
    (tmp_path / "file").write_text("in the way")
    entries = CacheFolder(tmp_path / "file" / "results")
    for name in ("a", "b"):
        assert not entries.write(entries.folder / name, CONTENT)
    (message,) = caplog.messages
    assert message.endswith("the run continues, its results are not cached")


def test_unreadable_entry_is_a_miss(
    entries: CacheFolder, entry: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also a folder in its place."""
    entry.unlink()
    entry.mkdir()
    assert entries.read(entry) is None
    assert len(caplog.messages) == 1
