"""Which folder is the project's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conformance.corpus import project
from conformance.corpus.project import find_project

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def checkout(folder: Path) -> Path:
    """Make a folder look like a checkout."""
    (folder / "matrix").mkdir(parents=True)
    (folder / "cases").mkdir()
    (folder / "matrix" / "releases.toml").touch()
    return folder


def test_the_nearest_checkout_above(tmp_path: Path) -> None:
    """From any folder inside it."""
    root = checkout(tmp_path / "outer")
    inner = checkout(root / "deep" / "inner")
    assert find_project(inner / "cases").root == inner
    assert find_project(root / "deep").root == root
    assert find_project(root).writable


def test_outside_of_any_the_package_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout the package runs from, else the data installed with it, read-only."""
    package = checkout(tmp_path / "source") / "conformance"
    monkeypatch.setattr(project, "PACKAGE", package)
    elsewhere = tmp_path / "elsewhere"
    assert find_project(elsewhere).root == tmp_path / "source"
    monkeypatch.setattr(project, "PACKAGE", tmp_path / "site" / "conformance")
    found = find_project(elsewhere)
    assert (found.root, found.writable) == (elsewhere, False)
    assert found.cases == tmp_path / "site" / "conformance" / "data" / "cases"
