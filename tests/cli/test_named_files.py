"""Files that options name: found out early whether they can be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.app.output_files import check_writable, write_file
from conformance.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    """A command that fails after it has made no file, and spoilt none."""
    check_writable("--json", tmp_path / "new.json")
    assert not any(tmp_path.iterdir())
    there = tmp_path / "there.json"
    there.write_text("{}")
    check_writable("--json", there)
    assert there.read_text() == "{}"


def test_what_cannot_be_written_names_its_option(tmp_path: Path) -> None:
    """Before anything has run."""
    with pytest.raises(UsageError, match=r"--json .*none/x\.json: cannot be written"):
        check_writable("--json", tmp_path / "none" / "x.json")


def test_the_last_line_has_an_end(tmp_path: Path) -> None:
    """And one alone."""
    for content in (b"a", b"a\n"):
        write_file("--json", tmp_path / "x.json", content)
        assert (tmp_path / "x.json").read_bytes() == b"a\n"
