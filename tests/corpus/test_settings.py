"""What a project says of itself in its pyproject.toml."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.corpus.settings import ProjectSettings, find_settings, settings_file
from conformance.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

URL = "https://nightly.example/index/"


def test_the_nearest_file_with_settings_counts(tmp_path: Path) -> None:
    """One without any, as a project within a project may have, does not hide those above it."""
    inner = tmp_path / "sub" / "folder"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(f'[tool.conformance]\nnightly-index = "{URL}"\n')
    (inner / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert find_settings(inner).nightly_index == URL
    (inner / "pyproject.toml").write_text("[tool.conformance]\n")
    assert find_settings(inner) == ProjectSettings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[tool.conformance]\nnightly_index = "x"\n',
            "unknown field.*known are nightly-index, with, pass-env, functions",
        ),
        ("[tool.conformance]\nnightly-index = 1\n", "expected `str`, got `int`"),
        ('[tool.conformance]\npass-env = ["A B"]\n', "expected `str` matching regex"),
        ("tool.conformance = 3\n", r"expected `object`, got `int`"),
        ("[tool.conformance\n", "cannot read the settings"),
    ],
)
def test_wrong_settings_are_told(tmp_path: Path, text: str, message: str) -> None:
    """With the file they are in."""
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError, match=f"pyproject.toml.*{message}"):
        find_settings(tmp_path)


def test_what_cells_have_is_found_from_anywhere(tmp_path: Path) -> None:
    """A path is one from the folder of the settings."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[tool.conformance]\nwith = [".", "optax>=0.2"]\n'
        '[[tool.conformance.functions]]\nfunction = "mine:f"\n'
    )
    found = find_settings(tmp_path / "sub")
    assert found.wanted == (str(tmp_path), "optax>=0.2")
    assert [one.function for one in found.functions] == ["mine:f"]


def test_the_file_they_stand_in(tmp_path: Path) -> None:
    """The nearest that has any; none is no file."""
    inner = tmp_path / "sub"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[project]\nname = 'a'\n")
    assert settings_file(inner) is None
    (tmp_path / "pyproject.toml").write_text("[tool.conformance]\n")
    assert settings_file(inner) == tmp_path / "pyproject.toml"
