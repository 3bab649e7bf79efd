"""Output files named by options are checked before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.app.output_files import check_writable, write_file
from conformance.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_check_writable_neither_creates_nor_changes_the_file(tmp_path: Path) -> None:
    """The command may still fail afterwards."""
    check_writable("--json", tmp_path / "new.json")
    assert not any(tmp_path.iterdir())
    there = tmp_path / "there.json"
    there.write_text("{}")
    check_writable("--json", there)
    assert there.read_text() == "{}"


def test_unwritable_file_is_reported_with_its_option(tmp_path: Path) -> None:
    """Before anything has run."""
    with pytest.raises(UsageError, match=r"--json .*none/x\.json: cannot be written"):
        check_writable("--json", tmp_path / "none" / "x.json")


def test_written_file_ends_with_exactly_one_newline(tmp_path: Path) -> None:
    """Whether the content ends with a newline or not."""
    for content in (b"a", b"a\n"):
        write_file("--json", tmp_path / "x.json", content)
        assert (tmp_path / "x.json").read_bytes() == b"a\n"
