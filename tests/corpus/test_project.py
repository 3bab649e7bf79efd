"""Projects: their folders, paths relative to them, and their settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.corpus import project
from conformance.corpus.project import (
    ProjectSettings,
    find_project,
    find_settings,
    find_settings_file,
    list_modules,
    relative_to_project,
)
from conformance.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def checkout(folder: Path) -> Path:
    """Make a folder look like a checkout."""
    (folder / "matrix").mkdir(parents=True)
    (folder / "cases").mkdir()
    (folder / "matrix" / "releases.toml").touch()
    return folder


def test_the_nearest_checkout_is_found(tmp_path: Path) -> None:
    """From any folder within it."""
    root = checkout(tmp_path / "outer")
    inner = checkout(root / "deep" / "inner")
    assert find_project(inner / "cases").root == inner
    assert find_project(root / "deep").root == root
    assert find_project(root).writable


def test_outside_a_checkout_the_package_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkout of the package, otherwise the installed data, read-only."""
    package = checkout(tmp_path / "source") / "conformance"
    monkeypatch.setattr(project, "PACKAGE", package)
    elsewhere = tmp_path / "elsewhere"
    assert find_project(elsewhere).root == tmp_path / "source"
    monkeypatch.setattr(project, "PACKAGE", tmp_path / "site" / "conformance")
    found = find_project(elsewhere)
    assert (found.root, found.writable) == (elsewhere, False)
    assert found.cases == tmp_path / "site" / "conformance" / "data" / "cases"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("/ci/1/project/cases/loops/adam.py:54", "cases/loops/adam.py:54"),
        ("entry, f/loops/add, /a/cases/loops/x.py:1", "entry, f/loops/add, cases/loops/x.py:1"),
        ("/home/me/project/lib/model.py:3", "lib/model.py:3"),
        ("/usr/lib/jax/loops.py:1", "/usr/lib/jax/loops.py:1"),
        ("/a/loops/x.py and /b/loops/y.py", "a/loops/x.py and b/loops/y.py"),
        ("cases/loops/x.py:1", "cases/loops/x.py:1"),
        ("", ""),
    ],
)  # fmt: skip
def test_paths_in_the_project_become_relative(text: str, told: str) -> None:
    """Regardless of its folder during the run; other paths stay absolute."""
    assert relative_to_project(text, "loops/adam[1]", "/home/me/project") == told


URL = "https://nightly.example/index/"


def test_the_nearest_file_with_settings_applies(tmp_path: Path) -> None:
    """A file without settings does not hide those above it."""
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
def test_invalid_settings_are_an_error(tmp_path: Path, text: str, message: str) -> None:
    """The message names the file."""
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError, match=f"pyproject.toml.*{message}"):
        find_settings(tmp_path)


def test_paths_of_packages_are_relative_to_the_settings(tmp_path: Path) -> None:
    """A path is one from the folder of the settings."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "pyproject.toml").write_text(
        '[tool.conformance]\nwith = [".", "optax>=0.2"]\n'
        '[[tool.conformance.functions]]\nfunction = "mine:f"\n'
    )
    found = find_settings(tmp_path / "sub")
    assert found.wanted == (str(tmp_path), "optax>=0.2")
    assert [one.function for one in found.functions] == ["mine:f"]


def test_the_settings_file_is_found(tmp_path: Path) -> None:
    """The nearest with settings; None if there is none."""
    inner = tmp_path / "sub"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[project]\nname = 'a'\n")
    assert find_settings_file(inner) is None
    (tmp_path / "pyproject.toml").write_text("[tool.conformance]\n")
    assert find_settings_file(inner) == tmp_path / "pyproject.toml"


def test_cases_in_an_installed_package_are_no_modules(tmp_path: Path) -> None:
    """A wheel has the modules of its checkout, also in a folder called `data`."""
    package = tmp_path / "data" / "conformance"
    for name in ("b.py", "a.py", "data/cases/family/topic.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).touch()
    assert list_modules(package) == [package / "a.py", package / "b.py"]
