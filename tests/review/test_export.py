"""Commits beside a repository, by git itself."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from conformance.errors import UsageError
from conformance.review.export import (
    Commit,
    find_author,
    find_repository,
    list_tracked,
    list_uncommitted,
    make_patches,
)

if TYPE_CHECKING:
    from pathlib import Path

WHEN = "2026-11-22T03:00:00+00:00"


def git(folder: Path, *arguments: str, data: bytes = b"") -> str:
    """Run git."""
    done = subprocess.run(
        ["git", *arguments], cwd=folder, input=data, capture_output=True, check=True
    )
    return done.stdout.decode()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose user has made git say odd things of patches."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\n name = Ann Öther\n email = ann@x\n[diff]\n noprefix = true\n external = false\n"
        "[format]\n attach = yes\n signoff = true\n subjectPrefix = ODD\n[color]\n ui = always\n"
        "[init]\n defaultBranch = main\n[commit]\n gpgSign = false\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    root = tmp_path / "repository"
    (root / "cases").mkdir(parents=True)
    git(root, "init", "-q")
    (root / "cases" / "kept.txt").write_text("kept\n")
    (root / "cases" / "gone.bin").write_bytes(b"\0\1gone")
    (root / "cases" / "run.sh").write_text("true\n")
    (root / "cases" / "run.sh").chmod(0o755)
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def test_applied_patches_give_the_planned_files(repository: Path, tmp_path: Path) -> None:
    """In a clone: texts, bytes, a removal, the mode; the repository itself is unchanged."""
    before = {p: p.read_bytes() for p in repository.rglob("*") if p.is_file()}
    cases = repository / "cases"
    message = "golden: é\n\n* accepted\n  what: diff --git a/x b/x\n  From: nobody\n"
    commits = [
        Commit(message="fix: one\n", files={cases / "run.sh": b"false\n"}),
        Commit(
            message=message,
            files={cases / "gone.bin": None, cases / "new" / "v@x ü.bin": bytes(range(256))},
        ),
    ]
    mailbox = make_patches(repository, commits, WHEN)
    after = {p: p.read_bytes() for p in repository.rglob("*") if p.is_file()}
    assert before == after
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(repository), str(clone))
    git(clone, "am", "-q", data=mailbox)
    assert (clone / "cases" / "new" / "v@x ü.bin").read_bytes() == bytes(range(256))
    assert (clone / "cases" / "run.sh").stat().st_mode & 0o111
    assert sorted(p.name for p in (clone / "cases").iterdir()) == ["kept.txt", "new", "run.sh"]
    assert git(clone, "log", "-1", "--format=%B").strip() == message.strip()
    assert git(clone, "log", "--format=%an <%ae> %s", "-2").splitlines() == [
        "Ann Öther <ann@x> golden: é",
        "Ann Öther <ann@x> fix: one",
    ]


def test_uncommitted_files_are_listed(repository: Path) -> None:
    """Edited and untracked files; ignored files and other folders are not."""
    cases = repository / "cases"
    assert list_uncommitted(repository, [cases]) == []
    (cases / "kept.txt").write_text("edited\n")
    (cases / "new").mkdir()
    (cases / "new" / "n.txt").write_text("n\n")
    assert list_uncommitted(repository, [cases]) == ["cases/kept.txt", "cases/new/n.txt"]
    assert list_uncommitted(repository, [cases / "run.sh"]) == []
    assert list_tracked(repository, [cases]) == {
        cases / name for name in ("kept.txt", "gone.bin", "run.sh")
    }


def test_the_author_is_that_of_git(repository: Path, tmp_path: Path) -> None:
    """With a default outside of a repository."""
    assert find_author(repository) == find_author(tmp_path) == "Ann Öther <ann@x>"
    assert find_repository(repository / "cases") == repository.resolve()


def test_a_folder_outside_of_a_repository_is_an_error(tmp_path: Path) -> None:
    """The message of git, with the folder."""
    with pytest.raises(UsageError, match=r"git rev-parse in .*not a git repository"):
        find_repository(tmp_path)
