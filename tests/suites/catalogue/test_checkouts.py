"""Checkouts of suites, in the cache and of the user."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from conformance.cells.environment_locks import hold_environment
from conformance.errors import InfrastructureError, UsageError
from conformance.suites.catalogue.checkouts import Checkouts, inspect_own_checkout
from tests.suites.repositories import NAME, Repositories, committed, git, repositories

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def made(tmp_path: Path) -> Repositories:
    """The repositories."""
    return repositories(tmp_path / "made")


@pytest.fixture
def notes() -> list[str]:
    """The messages about fetches and changes."""
    return []


@pytest.fixture
def checkouts(tmp_path: Path, notes: list[str]) -> Checkouts:
    """An empty cache."""
    return Checkouts(tmp_path / "cache", notes.append)


def test_checkout_is_fetched_once(
    checkouts: Checkouts, made: Repositories, notes: list[str]
) -> None:
    """Then it is used offline, with the pinned revision."""
    suite = made.named()
    assert not checkouts.is_fetched(NAME, made.revision)
    first = checkouts.get(suite)
    assert checkouts.is_fetched(NAME, made.revision)
    shutil.rmtree(made.folder)
    second = checkouts.get(suite)
    assert first == second
    assert (first.label, first.own) == (made.revision, False)
    assert notes == [f"fetching {NAME} {made.revision[:12]} from {made.url}"]


def test_each_revision_has_its_checkout(checkouts: Checkouts, made: Repositories) -> None:
    """In a folder named by the commit."""
    later = committed(made.folder / "suite", {"later.py": ""})
    one = checkouts.get(made.named())
    other = checkouts.get(made.named(), revision=later)
    assert (one.folder.parent, one.content) != (other.folder, other.content)
    assert {path.name for path in one.folder.parent.iterdir() if path.is_dir()} == {
        made.revision, later,
    }  # fmt: skip


def edit(folder: Path) -> None:
    """Change a file."""
    (folder / "conftest.py").write_text("broken")


def remove(folder: Path) -> None:
    """Remove what the submodule holds."""
    shutil.rmtree(folder / "spec")


def add(folder: Path) -> None:
    """Add a file that git ignores."""
    (folder / ".gitignore").write_text("*.txt\n")
    (folder / "spec" / "more.txt").touch()


def break_git(folder: Path) -> None:
    """Change a file where git cannot say what it was."""
    edit(folder)
    shutil.rmtree(folder / ".git" / "objects")


@pytest.mark.parametrize("change", [edit, remove, add, break_git])
def test_changed_checkout_is_restored(
    checkouts: Checkouts, made: Repositories, notes: list[str], change: Callable[[Path], None]
) -> None:
    """With a message."""
    before = checkouts.get(made.named())
    change(before.folder)
    notes.clear()
    after = checkouts.get(made.named())
    assert before == after
    assert (after.folder / "spec" / "data.json").is_file()
    assert not (after.folder / "spec" / "more.txt").exists()
    assert (after.folder / "conftest.py").read_text() != "broken"
    (line,) = notes
    assert "was changed since it was fetched, and is restored" in line or "fetching" in line


def test_checkout_in_use_is_not_restored(checkouts: Checkouts, made: Repositories) -> None:
    """The message has a remedy."""
    checkout = checkouts.get(made.named())
    with hold_environment(checkout.folder):
        assert not checkouts.restore(checkout)
        edit(checkout.folder)
        with pytest.raises(InfrastructureError, match=r"another run uses it.*--suite-path"):
            checkouts.get(made.named())
    assert checkouts.restore(checkout)
    assert (checkout.folder / "conftest.py").read_text() != "broken"


def clone_suite(made: Repositories, folder: Path) -> Path:
    """Clone the suite with its submodule, and return where it lies."""
    git(made.folder, "clone", "--quiet", made.url, str(folder))
    shutil.rmtree(folder / "spec")
    git(folder, "clone", "--quiet", str(made.folder / "spec"), "spec")
    return folder


def test_own_checkout_has_its_revision(made: Repositories, tmp_path: Path) -> None:
    """If it is a Git repository."""
    folder = clone_suite(made, tmp_path / "mine")
    whole = inspect_own_checkout(folder, made.named())
    assert (whole.label, whole.own) == (made.revision, True)
    edit(folder)
    changed = inspect_own_checkout(folder, made.named())
    assert changed.label == f"{made.revision}-changed"
    assert changed.content != whole.content
    shutil.rmtree(folder / ".git")
    assert inspect_own_checkout(folder, made.named()).label == ""
    git(tmp_path, "init", "--quiet")  # a repository around it knows nothing of it
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message=x")
    assert inspect_own_checkout(folder, made.named()).label == ""


def test_content_hash_is_independent_of_the_folder(
    made: Repositories, checkouts: Checkouts, tmp_path: Path
) -> None:
    """Cached results are valid on another machine."""
    folder = clone_suite(made, tmp_path / "mine")
    (folder / "mini_tests" / "__pycache__").mkdir()
    (folder / "mini_tests" / "__pycache__" / "x.pyc").touch()
    assert inspect_own_checkout(folder, made.named()).content == checkouts.get(made.named()).content


def test_invalid_own_checkout_is_a_usage_error(made: Repositories, tmp_path: Path) -> None:
    """With a message for each problem."""
    suite = made.named()
    with pytest.raises(UsageError, match=r"--suite-path .*away: no such folder, expected"):
        inspect_own_checkout(tmp_path / "away", suite)
    with pytest.raises(UsageError, match="has no mini_tests, expected a checkout of file:"):
        inspect_own_checkout(made.folder, suite)
    git(made.folder, "clone", "--quiet", made.url, str(tmp_path / "mine"))
    with pytest.raises(UsageError, match=r"submodule spec is missing; git -C .* update --init"):
        inspect_own_checkout(tmp_path / "mine", suite)
