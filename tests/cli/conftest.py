"""A project factory, and a cache that belongs to the test session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cells.interpreter_inspection import inspect_path_environment
from conformance.cells.interpreters import forget_interpreters
from tests.projects import Project, make_project
from tests.workbench import make_test_cache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    MakeProject = Callable[[Mapping[str, str]], Project]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder for the session that shares only the environments with the user's cache."""
    return make_test_cache(tmp_path_factory.mktemp("conformance-cache"))


@pytest.fixture(scope="session")
def private_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder for environments of made-up packages, which no other cache may contain."""
    return tmp_path_factory.mktemp("private-cache")


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, shared_cache: Path) -> None:
    forget_interpreters()
    inspect_path_environment.cache_clear()
    monkeypatch.setenv("CONFORMANCE_CACHE", str(shared_cache))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("CI", raising=False)


@pytest.fixture
def new_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> MakeProject:
    """Return a function that makes a project from a `{filename: text}` mapping."""

    def make(files: Mapping[str, str]) -> Project:
        return make_project(tmp_path / "project", files, capsys)

    return make
