"""Case files read and written as their project has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.errors import UsageError
from conformance.review.writing import encoded, line_length, read

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pyproject.toml", "[tool.ruff]\nline-length = 120\n", 120),
        ("pyproject.toml", "[tool.black]\nline-length = 79\n", 79),
        ("ruff.toml", "line-length = 99\n", 99),
        ("pyproject.toml", "[tool.ruff]\n", 88),
        ("pyproject.toml", "[tool.ruff\n", 88),
    ],
)
def test_how_wide_lines_may_be(name: str, text: str, expected: int, tmp_path: Path) -> None:
    """As the nearest configuration of the formatter says."""
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 88\n")
    folder = tmp_path / "cases" / "fam"
    folder.mkdir(parents=True)
    (tmp_path / "cases" / name).write_text(text)
    assert line_length(folder / "topic.py") == expected


@pytest.mark.parametrize(
    "data",
    ["é\r\n".encode(), b"\xef\xbb\xbfx = 1\n", b"# coding: latin-1\n# \xe9\n"],
    ids=["line ends", "mark", "coding"],
)
def test_a_file_is_written_as_it_was_read(data: bytes, tmp_path: Path) -> None:
    """In its encoding, with its line ends."""
    file = tmp_path / "topic.py"
    file.write_bytes(data)
    assert encoded(file, read(file)) == data


def test_a_file_that_cannot_be_decoded_is_said(tmp_path: Path) -> None:
    """With its name."""
    file = tmp_path / "topic.py"
    file.write_bytes(b"# \xff\n")
    with pytest.raises(UsageError, match=r"topic\.py: cannot be read"):
        read(file)
