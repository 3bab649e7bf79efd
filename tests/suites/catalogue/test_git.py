"""Fetching repositories: real git, local ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.suites.catalogue import git as running
from conformance.suites.catalogue.git import (
    NoGitError,
    RepositorySource,
    fetch_repository,
    parse_revision,
    resolve_url,
)
from tests.suites.repositories import committed, git, repositories

if TYPE_CHECKING:
    from pathlib import Path


def names(folder: Path) -> set[str]:
    """Return what lies in a folder."""
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


@pytest.mark.parametrize("link", ["../spec", "{uri}/spec", "https://nowhere.invalid/spec"])
def test_a_repository_with_its_submodule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    """At the commit that is pinned, wherever the submodule is told to be; git's settings count."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{tmp_path.as_uri()}/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://nowhere.invalid/")
    made = repositories(tmp_path, link.format(uri=tmp_path.as_uri()))
    committed(tmp_path / "suite", {"later.py": ""})
    committed(tmp_path / "spec", {"data.json": "[]\n"})
    there = tmp_path / "cache" / "there"
    fetch_repository(RepositorySource(url=made.url, revision=made.revision), there)
    assert (there / "spec" / "data.json").read_text() == "[1, 2, 3]\n"
    assert (there / "mini_tests" / "test_sums.py").is_file()
    assert not (there / "later.py").exists()
    assert git(there, "rev-parse", "HEAD") == made.revision
    assert git(there, "status", "--porcelain", "--ignored") == ""
    assert names(there.parent) == {"there"}


def test_a_server_that_gives_no_commit_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that it has is fetched then."""
    first = committed(tmp_path / "suite", {"one.py": ""})
    committed(tmp_path / "suite", {"two.py": ""})
    # The oldest way to talk, in which a server gives what it advertises alone.
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "protocol.version")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "0")
    url = (tmp_path / "suite").as_uri()
    fetch_repository(RepositorySource(url=url, revision=first), tmp_path / "there")
    assert names(tmp_path / "there") == {".git", "one.py"}


@pytest.mark.parametrize(
    ("url", "revision", "kind", "said"),
    [
        ("{uri}/suite", "0" * 40, UsageError, "has no commit 0000000"),
        ("{uri}/nothing", "0" * 40, InfrastructureError, "cannot be fetched: .*nothing"),
        ("{uri}/suite", "{broken}", InfrastructureError, "submodule spec has no URL"),
        ("{uri}/suite", "{away}", InfrastructureError, "away.*cannot be fetched"),
        ("http://me:hidden-word@127.0.0.1:1/x", "0" * 40, InfrastructureError, "//\\*\\*\\*@127"),
    ],
)
def test_what_cannot_be_fetched(
    tmp_path: Path, url: str, revision: str, kind: type[ConformanceError], said: str
) -> None:
    """One error that says why; nothing is left, and no secret told."""
    folder = tmp_path / "made"
    repositories(folder)
    told = '[submodule "spec"]\n\tpath = spec\n\turl = ../away\n'
    commits = {
        "away": committed(folder / "suite", {".gitmodules": told}),
        "broken": committed(folder / "suite", {".gitmodules": ""}),
    }
    source = RepositorySource(
        url=url.format(uri=folder.as_uri()), revision=revision.format(**commits)
    )
    with pytest.raises(kind, match=said) as caught:
        fetch_repository(source, tmp_path / "cache" / "there")
    assert "hidden-word" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert names(tmp_path / "cache") == set()


def test_a_fetch_that_was_killed_leaves_nothing_half(tmp_path: Path) -> None:
    """What it had is in the way of nobody."""
    made = repositories(tmp_path)
    half = tmp_path / "cache" / "there.part"
    (half / "mini_tests").mkdir(parents=True)
    (half / "odd.py").touch()
    fetch_repository(
        RepositorySource(url=made.url, revision=made.revision), tmp_path / "cache" / "there"
    )
    assert names(tmp_path / "cache") == {"there"}
    assert not (tmp_path / "cache" / "there" / "odd.py").exists()


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says what to do."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoGitError, match=r"git is not installed.*--suite-path DIR"):
        fetch_repository(RepositorySource(url="/nowhere", revision="0" * 40), tmp_path / "there")
    assert names(tmp_path) == set()


def test_a_server_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not waited for without end."""
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(running.GitError, match=r"git fetch: no end within 0\.2 s"):
        running.run_git(["fetch"], tmp_path, timeout=0.2)


@pytest.mark.parametrize("text", ["", "main", "55fcc60", "g" * 40, "0" * 41])
def test_a_revision_is_all_of_a_commit(text: str) -> None:
    """Nothing else means the same tomorrow."""
    with pytest.raises(UsageError, match="--revision: expected a commit, all 40"):
        parse_revision(text, "--revision")
    assert parse_revision("A" * 40, "--revision") == "a" * 40


@pytest.mark.parametrize(
    ("url", "base", "found"),
    [
        ("https://host/x/", "https://other/y", "https://host/x/"),
        ("../spec", "https://host/org/suite", "https://host/org/spec"),
        ("../spec", "https://host/org/suite/", "https://host/org/spec"),
        ("../../spec.git", "https://host/org/suite", "https://host/spec.git"),
        ("./spec", "/srv/suite", "/srv/suite/spec"),
        ("../spec", "git@host:suite", "git@host:spec"),
        ("../spec", "git@host:org/suite", "git@host:org/spec"),
    ],
)
def test_where_a_submodule_comes_from(url: str, base: str, found: str) -> None:
    """As git itself resolves it."""
    assert resolve_url(url, base) == found
