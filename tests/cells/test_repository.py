"""Repositories of packages: clones, release tags, first-parent history, files."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from typing import TYPE_CHECKING

import pytest

from conformance.cells.repository import FOLDER, open_repository
from conformance.errors import InfrastructureError, UsageError
from tests.repositories import MadeRepository, make_repository

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def upstream(tmp_path: Path) -> MadeRepository:
    r"""Return a repository with a release branch and the merge of a pull request.

    main:     one(1.0) - two - merge of a pull request - four
    branch of 1.1:       \- backport(1.1)
    """
    made = make_repository(tmp_path / "upstream")
    made.commit("one", {"lib/__init__.py": "x = 1\n"}, tag="lib-v1.0")
    made.commit("two", {"lib/other.py": "y = 2\n"})
    made.git("checkout", "--quiet", "-b", "release")
    made.commit("backport", {"lib/__init__.py": "x = 3\n"}, tag="lib-v1.1")
    made.git("checkout", "--quiet", "-b", "change", "main")
    made.commit("on the branch of a pull request", {"README": "text\n"})
    made.git("checkout", "--quiet", "main")
    made.day += 1
    made.git("merge", "--quiet", "--no-ff", "-m", "Merge pull request #12 from x/change", "change")
    made.commit("four\n\nFixes #7, see https://example.org/o/r/issues/8\nPiperOrigin: 9",
                {"lib/__init__.py": "x = 4\n"})  # fmt: skip
    return made


def test_history_follows_first_parents(upstream: MadeRepository, tmp_path: Path) -> None:
    """Commits of a pull request count as its merge, and other folders can be left out."""
    repository = open_repository(str(upstream.folder), tmp_path)
    found = repository.list_commits("lib-v1.0", "main")
    assert [commit.title for commit in found] == [
        "two", "Merge pull request #12 from x/change", "four",
    ]  # fmt: skip
    in_library = repository.list_commits("lib-v1.0", "main", ["lib"])
    assert [commit.title for commit in in_library] == ["two", "four"]
    assert [commit.references for commit in found] == [(), ("#12",), ("#7", "#8")]
    assert [commit.date for commit in in_library] == ["2025-01-02", "2025-01-06"]


def test_merge_that_equals_its_pull_request_is_listed(
    upstream: MadeRepository, tmp_path: Path
) -> None:
    """Git itself leaves out the first commit of a range if it is such a merge."""
    upstream.git("checkout", "--quiet", "-b", "another")
    upstream.commit("part of a pull request", {"lib/__init__.py": "x = 5\n"})
    upstream.git("checkout", "--quiet", "main")
    upstream.git("merge", "--quiet", "--no-ff", "-m", "Merge pull request #13", "another")
    repository = open_repository(str(upstream.folder), tmp_path)
    found = repository.list_commits("main~1", "main", ["lib"])
    assert [commit.title for commit in found] == ["Merge pull request #13"]


def test_history_to_a_release_branch_leads_over_its_commits(
    upstream: MadeRepository, tmp_path: Path
) -> None:
    """A tag on a branch is reached from the main line."""
    repository = open_repository(str(upstream.folder), tmp_path)
    found = repository.list_commits("lib-v1.0", "lib-v1.1")
    assert [commit.title for commit in found] == ["two", "backport"]
    assert repository.find_merge_base("lib-v1.1", "main") == found[0].hash


def test_files_of_a_merge_are_those_of_its_pull_request(
    upstream: MadeRepository, tmp_path: Path
) -> None:
    """Against the first parent."""
    repository = open_repository(str(upstream.folder), tmp_path)
    _, merge, four = repository.list_commits("lib-v1.0", "main")
    assert repository.list_changed_files(merge.hash) == ["README"]
    assert repository.list_changed_files(four.hash) == ["lib/__init__.py"]


def test_unknown_revision_names_what_was_tried(upstream: MadeRepository, tmp_path: Path) -> None:
    """With the command that fetches it."""
    repository = open_repository(str(upstream.folder), tmp_path)
    with pytest.raises(UsageError, match=r"has no tag of 9, expected one of lib-v9, v9; fetch it"):
        repository.require_commit(["lib-v9", "v9"], "tag of 9")


def make_clone(upstream: MadeRepository, cache: Path) -> Path:
    """Clone a repository into a cache, and return the folder of the clone."""
    return open_repository(upstream.folder.as_uri(), cache).folder


def test_clone_has_no_contents_until_they_are_exported(
    upstream: MadeRepository, tmp_path: Path
) -> None:
    """It is bare, and made once."""
    url = upstream.folder.as_uri()
    repository = open_repository(url, tmp_path)
    listed = repository.list_files("main", "lib")
    missing = ["rev-list", "--objects", "--all", "--missing=print"]
    assert "?" in run_git(repository.folder, *missing)
    packs = len([*repository.folder.glob("objects/pack/*.pack")])
    repository.export("main", "lib", listed, tmp_path / "files.tar")
    # Together: one request for each file would take hours for a large package.
    assert len([*repository.folder.glob("objects/pack/*.pack")]) == packs + 1
    with tarfile.open(tmp_path / "files.tar") as tar:
        files = [member.name for member in tar if member.isfile()]
    assert files == ["__init__.py", "other.py"]
    inode = repository.folder.stat().st_ino
    assert open_repository(url, tmp_path).folder.stat().st_ino == inode


def test_clone_is_fetched_when_it_lacks_a_revision(
    upstream: MadeRepository, tmp_path: Path
) -> None:
    """A release may be newer than the clone."""
    repository = open_repository(upstream.folder.as_uri(), tmp_path)
    new = upstream.commit("five", {"lib/new.py": ""}, tag="lib-v2.0")
    # The lock of a fetch that was killed.
    (repository.folder / "packed-refs.lock").touch()
    assert repository.require_commit(["lib-v2.0"], "tag of 2.0") == new
    with pytest.raises(UsageError, match=r"has no tag of 3\.0, expected one of lib-v3\.0$"):
        repository.require_commit(["lib-v3.0"], "tag of 3.0")


@pytest.mark.parametrize("damage", ["objects", "HEAD", "packs"])
def test_damaged_clone_is_made_again(upstream: MadeRepository, tmp_path: Path, damage: str) -> None:
    """Whether it is noticed when it is opened, or later."""
    url = upstream.folder.as_uri()
    repository = open_repository(url, tmp_path)
    expected = repository.list_commits("lib-v1.0", "main")
    if damage == "objects":
        shutil.rmtree(repository.folder / "objects")
    elif damage == "HEAD":
        (repository.folder / "HEAD").write_text("")
    else:
        for pack in (repository.folder / "objects").glob("pack/*.pack"):
            pack.chmod(0o600)
            pack.write_bytes(pack.read_bytes()[:40])
    assert open_repository(url, tmp_path).list_commits("lib-v1.0", "main") == expected
    assert repository.list_commits("lib-v1.0", "main") == expected


def test_kill_during_a_clone_leaves_a_usable_cache(
    upstream: MadeRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next process waits for what the killed one has left running, and clones."""
    git = shutil.which("git")
    slow = tmp_path / "bin" / "git"
    slow.parent.mkdir()
    # Stops in the middle: after the clone has its first files.
    slow.write_text(f'#!/bin/sh\n"{git}" "$@"\nstatus=$?\n[ "$1" = clone ] && sleep 0.8\n'
                    "exit $status\n")  # fmt: skip
    slow.chmod(0o755)
    cache, url = tmp_path / "cache", upstream.folder.as_uri()
    program = (
        "import sys; from pathlib import Path; "
        "from conformance.cells.repository import open_repository; "
        f"open_repository({url!r}, Path({str(cache)!r}))"
    )
    path = f"{slow.parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PATH": path})
    while not [*cache.glob(f"{FOLDER}/*.part/HEAD")]:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not [*cache.glob(f"{FOLDER}/*.git")]
    repository = open_repository(url, cache)
    assert len(repository.list_commits("lib-v1.0", "main")) == 3
    assert not [*cache.glob(f"{FOLDER}/*.part")]


def test_shallow_clone_is_refused(upstream: MadeRepository, tmp_path: Path) -> None:
    """The message has the command that completes it."""
    url, folder = upstream.folder.as_uri(), tmp_path / "shallow"
    run_git(tmp_path, "clone", "--quiet", "--depth", "1", url, str(folder))
    with pytest.raises(UsageError, match=r"is a shallow clone.*fetch --unshallow --tags"):
        open_repository(str(folder), tmp_path)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("nowhere", r"nowhere: no such folder, expected a repository, or its URL"),
        ("{tmp}", r"is no git repository: .*; expected a clone"),
        ("https://ada:secret@example.org/r", r"\*\*\*.* has a password, expected a URL without"),
    ],
)
def test_bad_location_is_refused(tmp_path: Path, location: str, message: str) -> None:
    """Before anything is cloned."""
    with pytest.raises(UsageError, match=message) as caught:
        open_repository(location.format(tmp=tmp_path), tmp_path)
    assert "secret" not in str(caught.value)


def test_unreachable_url_is_infra(tmp_path: Path) -> None:
    """The message says what to do."""
    with pytest.raises(
        InfrastructureError,
        match=r"cannot be fetched: .*; check the network and the URL, or name a clone of your own",
    ):
        open_repository((tmp_path / "gone").as_uri(), tmp_path / "cache")


def run_git(folder: Path, *arguments: str) -> str:
    """Run git in a folder and return its output."""
    command = ["git", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
