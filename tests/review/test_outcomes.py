"""Outcomes of decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.review.outcomes import read_line_length

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
def test_the_line_length_is_that_of_the_formatter(
    name: str, text: str, expected: int, tmp_path: Path
) -> None:
    """By its nearest configuration."""
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 88\n")
    folder = tmp_path / "cases" / "fam"
    folder.mkdir(parents=True)
    (tmp_path / "cases" / name).write_text(text)
    assert read_line_length(folder / "topic.py") == expected
