"""A project factory, and a cache that shares only the user's environments."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from conformance.cache_folder import cache_root
from conformance.cells.interpreter_inspection import inspect_path_environment
from conformance.cells.interpreters import forget_interpreters
from tests.projects import ROOT, Project, make_project

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    MakeProject = Callable[[Mapping[str, str]], Project]

OTHER = "0.10.2"
"""A second release, with a lock in each project made here."""


@pytest.fixture(scope="session")
def envs() -> Path:
    """Folder of the environments of this user's cache."""
    folder = cache_root() / "envs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def cache(tmp_path: Path, envs: Path) -> Path:
    """A cache folder that shares only the environments of the user's cache."""
    folder = tmp_path / "cache"
    folder.mkdir()
    (folder / "envs").symlink_to(envs)
    return folder


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    forget_interpreters()
    inspect_path_environment.cache_clear()
    monkeypatch.setenv("CONFORMANCE_CACHE", str(cache))
    monkeypatch.setenv("COLUMNS", "200")
    for name in ("CI", "CONFORMANCE_STORE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def new_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> MakeProject:
    """Return a function that makes a project from a `{filename: text}` mapping."""

    def make(files: Mapping[str, str]) -> Project:
        project = make_project(tmp_path / "project", files, capsys)
        lock = ROOT / "matrix" / "locks" / f"jax{OTHER}-py311.txt"
        shutil.copy(lock, project.path / "matrix" / "locks")
        return project

    return make
