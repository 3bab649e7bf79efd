"""Invalid locks and unreachable indexes: infra, never a verdict."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.projects import CELL, ENVIRONMENT, GOOD

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import MakeProject

pytestmark = pytest.mark.cell
CASES = {"cases/fam/topic.py": GOOD}


def test_hash_mismatch_in_a_lock_is_infra(
    new_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing unverified is installed; exit 4 with the package and the lock."""
    project = new_project(CASES)
    lock = project.path / "matrix" / "locks" / f"{ENVIRONMENT}.txt"
    lock.write_text(re.sub("--hash=sha256:[0-9a-f]{8}", "--hash=sha256:00000000", lock.read_text()))
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))
    code, records = project.results()
    assert code == 4
    assert {record.outcome for record in records.values()} == {"infra"}
    (reason,) = records["one"].reasons
    assert f"{CELL}: {lock}: " in reason
    assert "Hash mismatch for `" in reason
    assert "lock again if you trust the index" in reason
    assert list((tmp_path / "cache" / "envs").glob("*[!k]/bin/python")) == []


def test_truncated_lock_is_infra(new_project: MakeProject) -> None:
    """The reason has the file and a remedy."""
    project = new_project(CASES)
    lock = project.path / "matrix" / "locks" / f"{ENVIRONMENT}.txt"
    lock.write_text("")
    code, records = project.results()
    assert code == 4
    assert (
        f"{lock}: got '', expected '# jax-conformance lock 1'; delete" in records["one"].reasons[0]
    )


@pytest.fixture
def _no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONFORMANCE_INDEX_URL", raising=False)
    monkeypatch.delenv("UV_FIND_LINKS", raising=False)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://user:secret@127.0.0.1:9/index")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setenv("CONFORMANCE_CACHE", str(tmp_path / "cache"))


@pytest.mark.usefixtures("_no_index")
@pytest.mark.parametrize("locked", [True, False])
def test_unreachable_package_index_is_infra(new_project: MakeProject, *, locked: bool) -> None:
    """To resolve a lock or to install one; the password of its URL is masked."""
    project = new_project(CASES)
    if not locked:
        (project.path / "matrix" / "locks" / f"{ENVIRONMENT}.txt").unlink()
    code, records = project.results()
    assert code == 4
    assert {record.verdict for record in records.values()} == {"infra"}
    (reason,) = records["one"].reasons
    assert "127.0.0.1:9" in reason
    assert "secret" not in reason


@pytest.mark.usefixtures("_no_index")
def test_resume_runs_jobs_that_an_unreachable_index_prevented(
    new_project: MakeProject, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the environment can be provisioned."""
    project = new_project(CASES)
    assert project.run("run").code == 4
    monkeypatch.setenv("CONFORMANCE_CACHE", str(shared_cache))
    monkeypatch.undo()
    monkeypatch.setenv("CONFORMANCE_CACHE", str(shared_cache))
    assert project.run("run", "--resume").code == 0
    assert len(project.runs) == 1
