"""Atomic writes of files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.errors import InfrastructureError
from conformance.files import write_atomically


def test_missing_folders_are_created(tmp_path: Path) -> None:
    """Writing needs no existing folder."""
    write_atomically(tmp_path / "a" / "b", b"content")
    assert (tmp_path / "a" / "b").read_bytes() == b"content"


@pytest.mark.parametrize("linked", [True, False])
def test_durable_write_syncs_the_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, linked: bool
) -> None:
    """New folders as well; a folder may be a symbolic link."""
    synced: list[Path] = []

    def fsync(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    monkeypatch.setattr(os, "fsync", fsync)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folder = tmp_path / ("link" if linked else "real")
    write_atomically(folder / "a" / "b" / "file", b"content", durable=True)
    real = tmp_path / "real"
    assert synced[1:] == [real / "a" / "b", real / "a", real]
    synced.clear()
    write_atomically(folder / "file", b"content", durable=True)
    assert synced[1:] == [real]


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the file and a remedy; no temporary file remains."""
    file = tmp_path / "a.toml"
    write_atomically(file, b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InfrastructureError, match=r"a\.toml: .*no space left.*free some space"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


KILLED = """
import os, pathlib, signal, sys
from conformance import files
real = os.link
files.os.link = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
files.write_atomically(pathlib.Path(sys.argv[1]), b"new")
"""


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="files have names here from the start")
def test_killed_writer_leaves_no_file(tmp_path: Path) -> None:
    """Neither a partial nor a temporary file."""
    done = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "file"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("nameless", [True, False])
def test_existing_file_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, nameless: bool
) -> None:
    """Also without support for unnamed files."""
    if not nameless:
        monkeypatch.delattr("os.O_TMPFILE", raising=False)
    for content in (b"old", b"new"):
        write_atomically(tmp_path / "file", content)
        assert (tmp_path / "file").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    (tmp_path / "other").write_bytes(b"")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "other").stat().st_mode
