"""`conformance cache show` and `conformance cache prune`: disk space used and freed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cells.stored_environments import EnvironmentFacts, store_facts
from tests.projects import SMOKE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import Project


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with one finished environment whose lock no longer exists."""
    cache = tmp_path / "cache"
    facts = EnvironmentFacts(
        lock="gone", python="3.11.7", interpreter="", interpreter_size=0,
        interpreter_mtime_ns=0, dist_infos=(),
    )  # fmt: skip
    folder = cache / "envs" / "jax0.6.2-py311-abc"
    store_facts(folder, facts)
    (folder / "big").write_bytes(bytes(range(256)) * 4096)
    monkeypatch.setenv("CONFORMANCE_CACHE", str(cache))
    return cache


pytestmark = pytest.mark.project({"matrix/smoke.toml": SMOKE})


@pytest.fixture
def project(project: Project, cache: Path) -> Project:
    """A project with one matrix, and the cache above."""
    return project


def test_cache_show_lists_each_environment_and_the_total(project: Project, cache: Path) -> None:
    """Sizes, last use, and the reason why an environment is unused."""
    ending = project.run("cache", "show")
    assert ending.code == 0
    assert (
        "jax0.6.2-py311-abc    1.0 MB    1.1 MB  today        its lock no longer exists"
        in ending.out
    )
    assert f"1 environment in {cache}: 1.0 MB apparent, 1.1 MB on disk, 1.1 MB" in ending.out
    assert "free: " in ending.out


def test_cache_show_json_has_sizes_in_bytes(project: Project) -> None:
    """The same figures as the table."""
    data = project.run("cache", "show", "--json", "-").json
    (row,) = data["environments"]
    assert row["environment"] == "jax0.6.2-py311-abc"
    assert row["kind"] == "cpu"
    assert row["own"] >= 1 << 20
    assert data["own"] == data["on_disk"] == row["own"]


def test_prune_removes_what_its_dry_run_lists(project: Project, cache: Path) -> None:
    """A second prune finds nothing to remove."""
    dry = project.run("cache", "prune", "--dry-run")
    assert dry.out.splitlines() == [
        "jax0.6.2-py311-abc: would go: its lock no longer exists",
        "1 environment, would free 1.1 MB",
    ]
    data = project.run("cache", "prune", "--json", "-").json
    assert (data["dry_run"], data["environments"][0]["kept"]) == (False, "")
    assert list((cache / "envs").iterdir()) == []
    assert project.run("cache", "prune").out == "0 environments, freed 0.0 MB\n"


@pytest.mark.parametrize("option", [("--dry-run",), ("--unused", "3")])
def test_prune_options_without_prune_are_refused(project: Project, option: tuple[str, ...]) -> None:
    """`matrix --dry-run` without `--prune` does nothing."""
    ending = project.run("matrix", *option)
    assert ending.code == 2
    assert "are for --prune" in ending.error
