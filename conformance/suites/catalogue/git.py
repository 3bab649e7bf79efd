"""Repositories of suites at one commit, fetched with their submodules."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from conformance.cells.git import GitError, NoGitError, run_git
from conformance.cells.secret_masking import mask_text
from conformance.errors import InfrastructureError, UsageError
from conformance.files import disk_error
from conformance.suites.catalogue.definition import COMMIT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_DEPTH: Final = 8
"""Levels of nested submodules that are fetched; a repository may contain itself."""
_GITLINK: Final = "160000"
"""Mode of a submodule in the tree of a commit."""
# The user's configuration must not change files in the cache, nor run hooks.
_PLAIN: Final = ("-c", "core.autocrlf=false", "-c", f"core.hooksPath={os.devnull}")
_UNKNOWN_COMMIT: Final = re.compile(
    r"not our ref|unadvertised object|no such remote ref|couldn't find remote ref|"
    r"does not allow request|shallow",
    re.IGNORECASE,
)
"""Messages of a server that lacks a commit, or serves no commit that no ref points at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositorySource:
    """The source of a repository.

    Attributes:
        url: URL or path, as git accepts them.
        revision: Commit.
    """

    url: str
    revision: str


def parse_revision(text: str, where: str) -> str:
    """Return a whole commit hash in lower case.

    Args:
        text: Commit as the user wrote it.
        where: Its source, for the message.

    Raises:
        UsageError: If it is not a whole commit hash.
    """
    revision = text.strip().lower()
    if not COMMIT.fullmatch(revision):
        raise UsageError(
            f"{where}: expected a commit, all 40 hexadecimal digits of it, got {text!r}"
        )
    return revision


def fetch_repository(
    source: RepositorySource, folder: Path, *, pass_fds: Sequence[int] = ()
) -> None:
    """Fetch a repository into a folder, which is unchanged after an error.

    Args:
        source: URL and commit of the repository.
        folder: The folder; its previous content is replaced.
        pass_fds: Descriptors that git keeps open until it ends.

    Raises:
        UsageError: If there is no such commit.
        NoGitError: If git is not installed.
        InfrastructureError: If it cannot be fetched, or the disk refuses.
    """
    part = folder.with_name(f"{folder.name}.part")
    try:
        shutil.rmtree(part, ignore_errors=True)  # of a fetch that was killed
        part.mkdir(parents=True)
        _fetch(source, part, pass_fds, MAX_DEPTH)
        if folder.exists():
            shutil.rmtree(folder)
        # A rename is atomic: a killed fetch leaves no folder that looks complete.
        part.rename(folder)
    except OSError as error:
        raise disk_error(folder, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _fetch(source: RepositorySource, folder: Path, pass_fds: Sequence[int], depth: int) -> None:
    try:
        # No template: the user's may contain hooks.
        run_git(["init", "--quiet", "--template="], folder, pass_fds=pass_fds)
        _fetch_commit(source, folder, pass_fds)
        checkout = ["checkout", "--quiet", "--force", "--detach", source.revision]
        run_git([*_PLAIN, "-c", "advice.detachedHead=false", *checkout], folder, pass_fds=pass_fds)
        links, urls = _list_links(folder), read_submodules(folder)
    except NoGitError as error:
        raise NoGitError(f"{error}, or give a checkout: --suite-path DIR") from None
    except GitError as error:
        raise InfrastructureError(
            f"{mask_text(source.url)}: cannot be fetched: {error}; check the network and the URL, "
            "or give a checkout of your own: --suite-path DIR"
        ) from None
    (folder / ".git" / "FETCH_HEAD").unlink(missing_ok=True)  # the URL in it may have a password
    for path, revision in links:
        url = urls.get(path)
        if not url or not depth:
            problem = "is nested too deep" if url else "has no URL in .gitmodules"
            raise InfrastructureError(f"{mask_text(source.url)}: submodule {path} {problem}")
        (folder / path).mkdir(parents=True, exist_ok=True)
        inner = RepositorySource(url=resolve_url(url, source.url), revision=revision)
        _fetch(inner, folder / path, pass_fds, depth - 1)


def _fetch_commit(source: RepositorySource, folder: Path, pass_fds: Sequence[int]) -> None:
    """Fetch one commit, or all refs from a server that does not serve single commits."""
    command = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules"]
    try:
        run_git(
            [*command, "--depth", "1", "--", source.url, source.revision], folder, pass_fds=pass_fds
        )
    except GitError as error:
        if not _UNKNOWN_COMMIT.search(str(error)):
            raise
        # All refs, not only branches: a pinned commit may be of a pull request or a tag.
        run_git([*command, "--", source.url, "+refs/*:refs/fetched/*"], folder, pass_fds=pass_fds)
        try:
            run_git(["cat-file", "-e", f"{source.revision}^{{commit}}"], folder)
        except GitError:
            raise UsageError(
                f"{mask_text(source.url)}: has no commit {source.revision}; check the revision"
            ) from None


def _list_links(folder: Path) -> list[tuple[str, str]]:
    """Return the path and the commit of each submodule that HEAD pins."""
    entries = run_git(["ls-tree", "-r", "-z", "HEAD"], folder).split("\0")
    parts = [entry.partition("\t") for entry in entries]
    return [(path, kind.split()[2]) for kind, _, path in parts if kind.startswith(_GITLINK)]


def read_submodules(folder: Path) -> dict[str, str]:
    """Return the URL of each submodule in `.gitmodules`, by its path; it may be relative.

    Args:
        folder: Checkout of the repository.

    Raises:
        GitError: If its `.gitmodules` cannot be read.
    """
    if not (folder / ".gitmodules").is_file():
        return {}
    text = run_git(["config", "-z", "-f", ".gitmodules", "--list"], folder)
    sections: dict[str, dict[str, str]] = {}
    for entry in filter(None, text.split("\0")):
        key, _, value = entry.partition("\n")
        section, _, name = key.rpartition(".")
        sections.setdefault(section, {})[name] = value
    complete = (values for values in sections.values() if {"path", "url"} <= values.keys())
    return {values["path"]: values["url"] for values in complete}


def resolve_url(url: str, base: str) -> str:
    """Return the absolute URL of a submodule.

    Args:
        url: Its URL in `.gitmodules`; maybe relative, `../other`.
        base: URL of the repository that contains it.
    """
    if not url.startswith(("./", "../")):
        return url
    base = base.rstrip("/")
    while url.startswith(("./", "../")):
        step, _, url = url.partition("/")
        if step == "..":
            # In `host:path`, as ssh spells it, the part before the colon stays.
            cut = max(base.rfind("/"), base.rfind(":"))
            base = base[: cut + (base[cut] == ":")] if cut > 0 else base
    return f"{base}{'' if base.endswith(':') else '/'}{url}"


def restore_checkout(folder: Path) -> None:
    """Restore the files of a checkout to its commit, and remove all others.

    Args:
        folder: The checkout, with its submodules.

    Raises:
        GitError: If git fails.
    """
    run_git([*_PLAIN, "reset", "--quiet", "--hard"], folder)
    # With -x ignored files go too; a second -f is needed for repositories inside this one.
    run_git([*_PLAIN, "clean", "--quiet", "-ffdx"], folder)
    for path, revision in _list_links(folder):
        inner = folder / path
        if not (inner / ".git").is_dir():
            raise GitError(f"{inner}: is no longer a checkout")
        run_git([*_PLAIN, "checkout", "--quiet", "--force", "--detach", revision], inner)
        restore_checkout(inner)
