"""Files are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import InfrastructureError
from conformance.files import write_atomically


def test_a_file_and_its_folder_are_made(tmp_path: Path) -> None:
    """Writing needs no folder to be there before."""
    write_atomically(tmp_path / "a" / "b", b"content")
    assert (tmp_path / "a" / "b").read_bytes() == b"content"


def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file and what to do; no temporary file stays behind."""
    file = tmp_path / "a.toml"
    write_atomically(file, b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(InfrastructureError, match=r"a\.toml: .*no space left.*free some space"):
        write_atomically(file, b"new")
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]
