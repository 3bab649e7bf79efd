"""Fetching of repositories, with real git and local repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.cells.git import GitError, NoGitError, run_git
from conformance.errors import ConformanceError, InfrastructureError, UsageError
from conformance.suites.catalogue.git import (
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
def test_repository_is_fetched_with_its_submodule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    """At the pinned commit, from any URL of the submodule; git's configuration applies."""
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


def test_all_refs_are_fetched_from_a_server_without_single_commits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server serves no commit that no ref points at."""
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
def test_failed_fetch_leaves_no_folder(
    tmp_path: Path, url: str, revision: str, kind: type[ConformanceError], said: str
) -> None:
    """One error with the reason, without secrets."""
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


def test_killed_fetch_is_repeated(tmp_path: Path) -> None:
    """Its partial folder is removed."""
    made = repositories(tmp_path)
    half = tmp_path / "cache" / "there.part"
    (half / "mini_tests").mkdir(parents=True)
    (half / "odd.py").touch()
    fetch_repository(
        RepositorySource(url=made.url, revision=made.revision), tmp_path / "cache" / "there"
    )
    assert names(tmp_path / "cache") == {"there"}
    assert not (tmp_path / "cache" / "there" / "odd.py").exists()


def test_missing_git_is_infra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has a remedy."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoGitError, match=r"git is not installed.*--suite-path DIR"):
        fetch_repository(RepositorySource(url="/nowhere", revision="0" * 40), tmp_path / "there")
    assert names(tmp_path) == set()


def test_hanging_server_is_infra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a time limit."""
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitError, match=r"git fetch: no end within 0\.2 s"):
        run_git(["fetch"], tmp_path, timeout=0.2)


@pytest.mark.parametrize("text", ["", "main", "55fcc60", "g" * 40, "0" * 41])
def test_revision_must_be_a_full_hash(text: str) -> None:
    """Names and abbreviations may change their meaning."""
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
def test_relative_urls_of_submodules_are_resolved(url: str, base: str, found: str) -> None:
    """As git resolves them."""
    assert resolve_url(url, base) == found
