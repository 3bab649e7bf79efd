"""Goldens and the harness do not change in one commit: `.ci/goldens.py`, on a real repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / ".ci" / "goldens.py"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of one commit."""
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    commit(tmp_path, "README.md")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    """Run git as somebody."""
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@owner.example"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True)


def commit(folder: Path, *names: str) -> None:
    """Make a commit that writes some files."""
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a") as out:
            out.write("a line\n")
    git(folder, "add", *names)
    git(folder, "commit", "--quiet", "-m", "something")


def check(folder: Path, base: str = "HEAD~1") -> subprocess.CompletedProcess[str]:
    """Run the check on the newest commit, or those since another."""
    command = [sys.executable, str(SCRIPT), base, "HEAD"]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["cases/f/golden/t/a.toml"], 0),
        (["cases/f/golden/t/a.toml", "cases/f/t.py", "reports/README.md"], 0),
        (["conformance/judge/verdict.py", "conformance/golden/store.py", "cases/f/t.py"], 0),
        (["cases/f/golden/t/a.toml", "conformance/judge/verdict.py"], 1),
        (["examples/training/goldens/a.toml", "conformance/worker/main.py"], 1),
        (["cases/f/golden/t/a.toml", "matrix/locks/jax0.6.2-py311.txt"], 1),
        (["tests/golden/a.toml", "conformance/cli/run.py"], 0),
    ],
)
def test_what_a_commit_may_change(repository: Path, names: list[str], code: int) -> None:
    """Goldens with cases and reports, not with what judges them."""
    commit(repository, *names)
    assert check(repository).returncode == code


def test_each_commit_counts_for_itself(repository: Path) -> None:
    """In two commits they may change, in one among others not; it is named."""
    commit(repository, "conformance/a.py")
    commit(repository, "cases/f/golden/a.toml")
    assert check(repository, "HEAD~2").returncode == 0
    commit(repository, "conformance/b.py", "cases/f/golden/b.toml")
    commit(repository, "README.md")
    ending = check(repository, "HEAD~4")
    assert ending.returncode == 1
    (line,) = ending.stderr.splitlines()
    assert "changes cases/f/golden/b.toml and conformance/b.py" in line
