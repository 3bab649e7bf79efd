"""Fetching a repository with git, with its submodules, as it is at one commit."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError, UsageError
from conformance.files import disk_error
from conformance.suites.catalogue.definition import COMMIT
from conformance.suites.catalogue.git import GitError, NoGitError, git

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

DEEPEST: Final = 8
"""Submodules of submodules that are followed."""
_GITLINK: Final = "160000"
# Of the user's configuration, what would change files or run something is not for a cache.
_PLAIN: Final = ("-c", "core.autocrlf=false", "-c", f"core.hooksPath={os.devnull}")
_UNKNOWN: Final = re.compile(
    r"not our ref|unadvertised object|no such remote ref|couldn't find remote ref|"
    r"does not allow request|shallow",
    re.IGNORECASE,
)
"""What a server says that has no such commit, or does not give one that nothing points at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositorySource:
    """Where a repository comes from.

    Attributes:
        url: Its URL, or path, as git has them.
        revision: Commit.
    """

    url: str
    revision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submodule:
    """A repository that another one has below itself.

    Attributes:
        path: Where, below the other.
        url: Where it comes from; maybe told relative to the other's.
    """

    path: str
    url: str


def checked_revision(text: str, where: str) -> str:
    """Return a commit as it is spelled in full.

    Args:
        text: The commit.
        where: What said it, for the message.

    Raises:
        UsageError: If it is none.
    """
    revision = text.strip().lower()
    if not COMMIT.fullmatch(revision):
        raise UsageError(
            f"{where}: expected a commit, all 40 hexadecimal digits of it, got {text!r}"
        )
    return revision


def fetch_whole(source: RepositorySource, folder: Path, *, holds: Sequence[int] = ()) -> None:
    """Fetch a repository into a folder, whole or not at all.

    Args:
        source: Where it comes from.
        folder: Where to; what lies there is replaced.
        holds: Descriptors that git keeps open until it ends.

    Raises:
        UsageError: If there is no such commit.
        NoGitError: If there is no git.
        InfrastructureError: If it cannot be fetched, or the disk refuses.
    """
    part = folder.with_name(f"{folder.name}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)  # of a fetch that was killed
        part.mkdir(parents=True)
        _fetch(source, part, holds, DEEPEST)
        if folder.exists():
            shutil.rmtree(folder)
        part.rename(folder)
    except OSError as error:
        raise disk_error(folder, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _fetch(source: RepositorySource, folder: Path, holds: Sequence[int], deeper: int) -> None:
    git(["init", "--quiet", "--template="], folder, holds=holds)
    try:
        _get(source, folder, holds)
        checkout = ["checkout", "--quiet", "--force", "--detach", source.revision]
        git([*_PLAIN, "-c", "advice.detachedHead=false", *checkout], folder, holds=holds)
        links, known = _links(folder), submodules_of(folder)
    except NoGitError:
        raise
    except GitError as error:
        raise InfrastructureError(
            f"{mask_text(source.url)}: cannot be fetched: {error}; check the network and the URL, "
            "or give a checkout of your own: --suite-path DIR"
        ) from None
    (folder / ".git" / "FETCH_HEAD").unlink(missing_ok=True)  # it names the URL
    for path, revision in links:
        url = next((one.url for one in known if one.path == path), "")
        if not url or not deeper:
            why = "has no URL in .gitmodules" if deeper else "lies too deep below others"
            raise InfrastructureError(f"{mask_text(source.url)}: submodule {path} {why}")
        (folder / path).mkdir(parents=True, exist_ok=True)
        inner = RepositorySource(url=resolved(url, source.url), revision=revision)
        _fetch(inner, folder / path, holds, deeper - 1)


def _get(source: RepositorySource, folder: Path, holds: Sequence[int]) -> None:
    """Get a commit; of a server that gives none by itself, all that it has."""
    told = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules"]
    try:
        git([*told, "--depth", "1", "--", source.url, source.revision], folder, holds=holds)
    except GitError as error:
        if not _UNKNOWN.search(str(error)):
            raise
        git([*told, "--", source.url, "+refs/*:refs/fetched/*"], folder, holds=holds)
        try:
            git(["cat-file", "-e", f"{source.revision}^{{commit}}"], folder)
        except GitError:
            raise UsageError(
                f"{mask_text(source.url)}: has no commit {source.revision}; check the revision"
            ) from None


def _links(folder: Path) -> list[tuple[str, str]]:
    """Return the submodules that a commit pins: path and commit of each."""
    entries = git(["ls-tree", "-r", "-z", "HEAD"], folder).split("\0")
    parts = [entry.partition("\t") for entry in entries]
    return [(path, kind.split()[2]) for kind, _, path in parts if kind.startswith(_GITLINK)]


def submodules_of(folder: Path) -> tuple[Submodule, ...]:
    """Return the submodules that the files of a repository tell of.

    Args:
        folder: Its checkout.

    Raises:
        GitError: If its `.gitmodules` cannot be read.
    """
    if not (folder / ".gitmodules").is_file():
        return ()
    text = git(["config", "-z", "-f", ".gitmodules", "--list"], folder)
    told: dict[str, dict[str, str]] = {}
    for entry in filter(None, text.split("\0")):
        key, _, value = entry.partition("\n")
        section, _, name = key.rpartition(".")
        told.setdefault(section, {})[name] = value
    found = (one for one in told.values() if {"path", "url"} <= one.keys())
    return tuple(Submodule(path=one["path"], url=one["url"]) for one in found)


def resolved(url: str, base: str) -> str:
    """Return where a submodule comes from.

    Args:
        url: As its `.gitmodules` says; maybe relative, `../other`.
        base: Where the repository comes from that has it.
    """
    if not url.startswith(("./", "../")):
        return url
    base = base.rstrip("/")
    while url.startswith(("./", "../")):
        here, _, url = url.partition("/")
        if here == "..":
            # Of `host:path`, as ssh has it, what stands before the colon stays.
            cut = max(base.rfind("/"), base.rfind(":"))
            base = base[: cut + (base[cut] == ":")] if cut > 0 else base
    return f"{base}{'' if base.endswith(':') else '/'}{url}"


def restore(folder: Path) -> None:
    """Make the files of a checkout what its commit says, and remove what is none of it.

    Args:
        folder: The checkout, with its submodules.

    Raises:
        GitError: If git cannot.
    """
    git([*_PLAIN, "reset", "--quiet", "--hard"], folder)
    # Ignored files too; each submodule is a repository of its own.
    git([*_PLAIN, "clean", "--quiet", "-ffdx"], folder)
    for path, revision in _links(folder):
        inner = folder / path
        if not (inner / ".git").is_dir():
            raise GitError(f"{inner}: is no checkout any more")
        git([*_PLAIN, "checkout", "--quiet", "--force", "--detach", revision], inner)
        restore(inner)
